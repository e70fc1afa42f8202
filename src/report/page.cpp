#include "report/page_head.h"

#include "report/html_text.h"
#include "report/page_style.h"

namespace stretto::report {

namespace {

constexpr size_t kLongestPageTitle = 200;

}  // namespace

std::string page_head(const PageHead& head) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; " +
      std::string(head.plays_sound ? "media-src data:; " : "") +
      "style-src 'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<link rel=\"icon\" "
      "href=\"data:,\"/>\n";
  if (head.refresh_seconds > 0) {
    out +=
        "<meta http-equiv=\"refresh\" content=\"" + std::to_string(head.refresh_seconds) + "\"/>\n";
  }
  return out + "<title>" + escape_html(head.title, kLongestPageTitle) + " – " +
         escape_html(head.kind) + "</title>\n<style>" + std::string(page_style()) + head.style +
         "</style>\n</head>\n";
}

}  // namespace stretto::report
