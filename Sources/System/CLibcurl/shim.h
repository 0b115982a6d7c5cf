// libcurl, and its variadic calls as functions: one for each type of argument that is used.
#pragma once
#include <curl/curl.h>

// The parentheses keep curl's own macros away: they check types only where the option is a constant.
static inline CURLcode clibcurl_set_long(CURL *easy, CURLoption option, long value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode clibcurl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode clibcurl_set_text(CURL *easy, CURLoption option, const char *value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode clibcurl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode clibcurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
  return (curl_easy_setopt)(easy, option, value);
}
// CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION and CURLOPT_READFUNCTION take the same form of function.
static inline CURLcode clibcurl_set_sink(CURL *easy, CURLoption option, curl_write_callback value) {
  return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode clibcurl_get_long(CURL *easy, CURLINFO info, long *value) {
  return (curl_easy_getinfo)(easy, info, value);
}

static inline CURLMcode clibcurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return (curl_multi_setopt)(multi, option, value);
}
static inline CURLMcode clibcurl_multi_set_socket(CURLM *multi, curl_socket_callback value, void *context) {
  CURLMcode code = (curl_multi_setopt)(multi, CURLMOPT_SOCKETDATA, context);
  return code == CURLM_OK ? (curl_multi_setopt)(multi, CURLMOPT_SOCKETFUNCTION, value) : code;
}
static inline CURLMcode clibcurl_multi_set_timer(CURLM *multi, curl_multi_timer_callback value, void *context) {
  CURLMcode code = (curl_multi_setopt)(multi, CURLMOPT_TIMERDATA, context);
  return code == CURLM_OK ? (curl_multi_setopt)(multi, CURLMOPT_TIMERFUNCTION, value) : code;
}

// What a message says, without the union that Swift would have to read.
static inline CURLcode clibcurl_result(const CURLMsg *message) { return message->data.result; }
