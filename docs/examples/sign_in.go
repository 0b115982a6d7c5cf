// Signs somebody in with Apple by way of siwa-accounts, with nothing but Go's own library.
//
// begin belongs where your pages link to "Sign in with Apple", finish where Apple's page posts its form to.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

var (
	client       = http.Client{Timeout: 70 * time.Second}
	errAgain     = errors.New("begin again")
	errForeign   = errors.New("not a sign-in that this browser has begun")
	errSilent    = errors.New("siwa-accounts does not answer")
	clientID     = os.Getenv("CLIENT_ID")
	redirectURI  = os.Getenv("REDIRECT_URI")
	defaultApple = "https://appleid.apple.com/auth/authorize"
)

// A session is what to keep of a browser: in a cookie SameSite=None; Secure.
type session struct{ state, nonce, key string }

type signedIn struct {
	Account struct {
		ID    string `json:"id"`
		IsNew bool   `json:"isNew"`
	} `json:"account"`
}

func secret() string {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(random)
}

// begin says where to send the browser.
func begin() (string, session) {
	apple := os.Getenv("APPLE_AUTHORIZE")
	if apple == "" {
		apple = defaultApple
	}
	s := session{secret(), secret(), secret()}
	query := url.Values{"client_id": {clientID}, "redirect_uri": {redirectURI}, "response_type": {"code id_token"},
		"response_mode": {"form_post"}, "scope": {"name email"}, "state": {s.state}, "nonce": {s.nonce}}
	return apple + "?" + strings.ReplaceAll(query.Encode(), "+", "%20"), s
}

// finish says who has signed in, by the form that Apple's page has posted.
func finish(s session, body string) (*signedIn, error) {
	form, err := url.ParseQuery(body)
	if err != nil || subtle.ConstantTimeCompare([]byte(form.Get("state")), []byte(s.state)) != 1 {
		return nil, errForeign
	}
	if form.Has("error") {
		return nil, errAgain // the person has cancelled
	}
	// form.Get("user") has the name, once and never again: store it now, under the session's key.
	return signIn(s.key, map[string]string{"identityToken": form.Get("id_token"), "authorizationCode": form.Get("code"),
		"nonce": s.nonce, "clientId": clientID, "redirectUri": redirectURI})
}

// signIn asks siwa-accounts. The key is the sign-in's own, and the same whenever this one is repeated.
func signIn(key string, asked map[string]string) (*signedIn, error) {
	body, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	wait, end := 0, time.Now().Add(5*time.Minute) // a code is good for so long
	for attempt := 0; attempt < 5; attempt++ {
		if time.Duration(wait)*time.Second > time.Until(end) {
			return nil, errAgain // the code would be too old
		}
		time.Sleep(time.Duration(wait) * time.Second)
		answer, text, err := ask(key, body)
		switch {
		case err != nil:
			wait = 1 // the connection was lost, and the answer with it: the same request gets the same one
			continue
		case answer.StatusCode == 200:
			var person signedIn
			return &person, json.Unmarshal(text, &person)
		case answer.StatusCode == 429 || answer.StatusCode == 503:
			if wait, err = strconv.Atoi(answer.Header.Get("Retry-After")); err != nil {
				wait = 5
			}
			continue
		}
		var problem struct{ Type, Detail string } // RFC 9457
		if err := json.Unmarshal(text, &problem); err != nil {
			return nil, err
		}
		if problem.Type == "urn:siwa:problem:begin-again" {
			return nil, errAgain // send the person to Apple once more
		}
		return nil, errors.New(problem.Detail)
	}
	return nil, errSilent
}

// ask sends the request once, and returns the whole answer.
func ask(key string, body []byte) (*http.Response, []byte, error) {
	request, err := http.NewRequest("POST", os.Getenv("ACCOUNTS_URL")+"/v1/sign-ins", bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("ACCOUNTS_TOKEN"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	answer, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, text, err
}

func main() {
	address, s := begin()
	fmt.Println(address)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	person, err := finish(s, lines.Text())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(person.Account.ID)
}
