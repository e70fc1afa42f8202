#include "report/page.h"

#include <algorithm>

#include "report/html_text.h"
#include "report/page_style.h"

namespace stretto::report {
namespace {

constexpr size_t kLongestTitle = 200;

std::string head_of(const Page& page) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; " +
      std::string(page.plays_sound ? "media-src data:; " : "") +
      "style-src 'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<link rel=\"icon\" "
      "href=\"data:,\"/>\n";
  if (page.refresh_seconds > 0) {
    out +=
        "<meta http-equiv=\"refresh\" content=\"" + std::to_string(page.refresh_seconds) + "\"/>\n";
  }
  return out + "<title>" + escape_html(page.title, kLongestTitle) + " – " + escape_html(page.kind) +
         "</title>\n<style>" + std::string(page_style()) + page.style + "</style>\n</head>\n";
}

const char* status_class(const std::string& status) {
  if (status.starts_with("finished")) return "finished";
  return status.starts_with("running") ? "running" : "stopped";
}

std::string title_of(const Page& page) {
  std::string out = "<p class=\"over\">" + escape_html(page.over) + "</p><div class=\"head\"><h1>" +
                    escape_html(page.title, kLongestTitle) + "</h1>";
  if (!page.status.empty()) {
    out += std::string("<span class=\"pill ") + status_class(page.status) + "\"><i></i>" +
           escape_html(page.status, kLongestTitle) + "</span>";
  }
  return out + "</div>\n";
}

}  // namespace

std::string render_page(const Page& page, const std::string& summary, const std::string& content) {
  return head_of(page) + "<body>\n<main>\n<header>" + title_of(page) + summary + "</header>\n" +
         content + "<footer>" + escape_html(page.footer) + "</footer>\n</main>\n</body>\n</html>\n";
}

std::string render_tile(const std::string& label, const std::string& value,
                        const std::string& note) {
  return "<div><dt>" + escape_html(label, kLongestTitle) + "</dt><dd>" + escape_html(value) +
         "<small>" + escape_html(note) + "</small></dd></div>";
}

std::string render_rows(const std::string& title,
                        const std::vector<std::pair<std::string, std::string>>& rows,
                        const std::string& note) {
  if (rows.empty()) return "";
  std::string out = "<section><h2>" + title + "</h2><div class=\"card\"><table>";
  for (size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
    out += "<tr><th scope=\"row\">" + escape_html(rows[i].first, kMaxCell) + "</th><td>" +
           escape_html(rows[i].second, kMaxCell) + "</td></tr>";
  }
  return out + "</table></div>" + note + "</section>\n";
}

}  // namespace stretto::report
