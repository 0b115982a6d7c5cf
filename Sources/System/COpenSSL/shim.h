// OpenSSL 3: TLS, keys, digests, certificates; and its macros as functions.
#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// A macro that Swift cannot read.
static const int copenssl_EVP_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;

// OSSL_PARAM_BLD keeps the pointer to a name, so the name must outlive the call, which a Swift String would not.
static const char *const copenssl_OSSL_PKEY_PARAM_RSA_N = OSSL_PKEY_PARAM_RSA_N;
static const char *const copenssl_OSSL_PKEY_PARAM_RSA_E = OSSL_PKEY_PARAM_RSA_E;
static const char *const copenssl_OSSL_PKEY_PARAM_GROUP_NAME = OSSL_PKEY_PARAM_GROUP_NAME;
static const char *const copenssl_OSSL_PKEY_PARAM_PUB_KEY = OSSL_PKEY_PARAM_PUB_KEY;
static const char *const copenssl_name_of_P256 = SN_X9_62_prime256v1;
static const uint64_t copenssl_options_no_renegotiation = SSL_OP_NO_RENEGOTIATION;
static const uint64_t copenssl_options_no_compression = SSL_OP_NO_COMPRESSION;
static const uint64_t copenssl_options_server_preference = SSL_OP_CIPHER_SERVER_PREFERENCE;

static inline int copenssl_set_min_version(SSL_CTX *context, int version) {
  return SSL_CTX_set_min_proto_version(context, version);
}
static inline int copenssl_set_versions(SSL *connection, int version) {
  return SSL_set_min_proto_version(connection, version) && SSL_set_max_proto_version(connection, version);
}
static inline int copenssl_has_chain(SSL_CTX *context) {
  STACK_OF(X509) *chain = NULL;
  return SSL_CTX_get0_chain_certs(context, &chain) == 1 && chain != NULL && sk_X509_num(chain) > 0;
}
static inline long copenssl_set_session_cache_off(SSL_CTX *context) {
  return SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
static inline long copenssl_set_mode(SSL_CTX *context) {
  return SSL_CTX_set_mode(
    context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
static inline void copenssl_set_read_ahead(SSL_CTX *context) { SSL_CTX_set_read_ahead(context, 1); }
static inline int copenssl_set_groups(SSL_CTX *context, const char *groups) {
  return SSL_CTX_set1_groups_list(context, groups);
}

// SHA-256's states as values, which OpenSSL 3 calls deprecated, because no provider stands behind them: EVP's contexts are
// allocated with each copy.
static inline void copenssl_sha256_init(SHA256_CTX *state) { SHA256_Init(state); }
static inline void copenssl_sha256_update(SHA256_CTX *state, const void *bytes, size_t count) {
  SHA256_Update(state, bytes, count);
}
static inline void copenssl_sha256_final(SHA256_CTX *state, unsigned char *digest) { SHA256_Final(digest, state); }

static inline void copenssl_sha256(const void *bytes, size_t count, unsigned char *digest) {
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, bytes, count);
  SHA256_Final(digest, &state);
}

// The digest of one byte and of what follows it: a leaf or a node of a Merkle tree (RFC 6962 section 2.1).
static inline void copenssl_sha256_prefixed(
  unsigned char prefix, const void *bytes, size_t count, unsigned char *digest) {
  // A whole first block at once: behind a single byte, OpenSSL would copy into a block of its own.
  unsigned char block[64] = {prefix};
  size_t first = count < sizeof block - 1 ? count : sizeof block - 1;
  if (first > 0) __builtin_memcpy(block + 1, bytes, first);
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, block, 1 + first);
  SHA256_Update(&state, (const unsigned char *)bytes + first, count - first);
  SHA256_Final(digest, &state);
}

// New keys for session tickets: of the old ones nothing is left, and tickets under them lead to a full handshake.
static inline int copenssl_renew_ticket_keys(SSL_CTX *context) {
  unsigned char keys[80];  // what SSL_CTX_set_tlsext_ticket_keys wants: a name, a key for HMAC, one for AES
  if (SSL_CTX_get_tlsext_ticket_keys(context, NULL, 0) != (long)sizeof keys) return 0;
  int done = RAND_priv_bytes(keys, sizeof keys) == 1
    && SSL_CTX_set_tlsext_ticket_keys(context, keys, sizeof keys) == 1;
  OPENSSL_cleanse(keys, sizeof keys);
  return done;
}

// ALPN (RFC 7301): http/1.1, or http/1.0, or a fatal no_application_protocol.
static int copenssl_select_http1(
  SSL *connection, const unsigned char **out, unsigned char *outlen, const unsigned char *in, unsigned int inlen,
  void *argument) {
  (void)connection;
  (void)argument;
  static const unsigned char protocol[] = "\x08http/1.1\x08http/1.0";
  if (SSL_select_next_proto((unsigned char **)out, outlen, protocol, sizeof protocol - 1, in, inlen)
      == OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Whether the last error is that a client offered other protocols alone.
static inline int copenssl_was_other_protocol(void) {
  unsigned long error = ERR_peek_last_error();
  return ERR_GET_REASON(error) == SSL_R_NO_APPLICATION_PROTOCOL;
}

// Whether the last error is that a client spoke plain HTTP to a TLS port.
static inline int copenssl_was_plain_http(void) {
  unsigned long error = ERR_peek_last_error();
  return ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST;
}
