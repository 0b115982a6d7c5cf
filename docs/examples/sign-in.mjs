// Signs somebody in with Apple by way of siwa-accounts, with nothing but Node's own library (18 or later).
//
// `begin` belongs where your pages link to "Sign in with Apple", `finish` where Apple's page posts its form to.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { createInterface } from 'node:readline'

const { ACCOUNTS_URL, ACCOUNTS_TOKEN, CLIENT_ID, REDIRECT_URI } = process.env
const apple = process.env.APPLE_AUTHORIZE ?? 'https://appleid.apple.com/auth/authorize'

/** Where to send the browser, and what to keep in its session: in a cookie SameSite=None; Secure. */
function begin() {
  const secret = () => randomBytes(32).toString('base64url')
  const session = { state: secret(), nonce: secret(), key: secret() }
  const query = new URLSearchParams({
    client_id: CLIENT_ID, redirect_uri: REDIRECT_URI, response_type: 'code id_token', response_mode: 'form_post',
    scope: 'name email', state: session.state, nonce: session.nonce,
  })
  return { address: `${apple}?${query.toString().replaceAll('+', '%20')}`, session }
}

/** Who has signed in, by the form that Apple's page has posted; null where they have to begin again. */
async function finish(session, body) {
  const form = new URLSearchParams(body)
  const [shown, kept] = [form.get('state') ?? '', session.state].map((text) => Buffer.from(text))
  if (shown.length !== kept.length || !timingSafeEqual(shown, kept)) {
    throw new Error('not a sign-in that this browser has begun')
  }
  if (form.has('error')) return null // the person has cancelled
  // form.get('user') has the name, once and never again: store it now, under the session's key.
  return signIn(session.key, {
    identityToken: form.get('id_token'), authorizationCode: form.get('code'), nonce: session.nonce,
    clientId: CLIENT_ID, redirectUri: REDIRECT_URI,
  })
}

/** `key` is the sign-in's own, and the same whenever this one is repeated. */
async function signIn(key, request) {
  let seconds = 0
  const end = performance.now() + 300_000 // a code is good for five minutes
  for (let attempt = 0; attempt < 5; attempt++) {
    if (performance.now() + seconds * 1000 > end) return null // the code would be too old
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    let answer, text
    try {
      answer = await fetch(`${ACCOUNTS_URL}/v1/sign-ins`, {
        method: 'POST', body: JSON.stringify(request), signal: AbortSignal.timeout(70_000),
        headers: { Authorization: `Bearer ${ACCOUNTS_TOKEN}`, 'Content-Type': 'application/json', 'Idempotency-Key': key },
      })
      text = await answer.text()
    } catch {
      seconds = 1 // the connection was lost, and the answer with it: the same request gets the same one
      continue
    }
    if (answer.ok) return JSON.parse(text)
    if (answer.status === 429 || answer.status === 503) {
      seconds = Number(answer.headers.get('Retry-After') ?? 5)
      continue
    }
    const problem = JSON.parse(text) // RFC 9457: type, title, status, detail
    if (problem.type === 'urn:siwa:problem:begin-again') return null // send the person to Apple once more
    throw new Error(problem.detail)
  }
  throw new Error('siwa-accounts does not answer')
}

const { address, session } = begin()
console.log(address)
for await (const line of createInterface({ input: process.stdin })) {
  const person = await finish(session, line)
  console.log(person ? person.account.id : 'begin again')
  break
}
