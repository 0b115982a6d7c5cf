// OpenSSL 3: TLS, keys, digests, certificates; and its macros as functions.
#pragma once
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// A macro that Swift cannot read.
static const int copenssl_EVP_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;

// OSSL_PARAM_BLD keeps the pointer to a name, so the name must outlive the call, which a Swift String would not.
static const char *const copenssl_OSSL_PKEY_PARAM_RSA_N = OSSL_PKEY_PARAM_RSA_N;
static const char *const copenssl_OSSL_PKEY_PARAM_RSA_E = OSSL_PKEY_PARAM_RSA_E;
