#include "report/media.h"

#include <algorithm>
#include <string_view>

#include "base/base64.h"
#include "base/text.h"
#include "report/html_text.h"
#include "report/page.h"
#include "report/sample_rows.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

using namespace std::string_view_literals;

constexpr size_t kLongestMime = 100;

bool is_sound(const std::string& mime) {
  return mime == "audio/wav";
}

/// How the bytes of a file of a known kind begin. SVG is not one of these kinds: it is a document.
bool begins_as(const std::string& mime, std::string_view bytes) {
  if (is_sound(mime)) {
    return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE";
  }
  if (mime == "image/png") return bytes.starts_with("\x89PNG\r\n\x1a\n"sv);
  return bytes.starts_with("\xff\xd8\xff"sv);
}

bool is_known_mime(const std::string& mime) {
  return is_sound(mime) || mime == "image/png" || mime == "image/jpeg";
}

/// Why the bytes cannot be kept; empty = they can.
std::string objection(const MediaSample& sample, size_t bytes_left) {
  const std::string shown = cut_text(sample.mime, kLongestMime);
  if (!is_known_mime(sample.mime)) return "left out: a page shows no " + shown;
  if (!begins_as(sample.mime, sample.bytes)) return "left out: not " + shown;
  const std::string size = human_bytes(sample.bytes.size());
  if (sample.bytes.size() > kMaxMedia) {
    return "left out: " + size + ", a report keeps at most " + human_bytes(kMaxMedia) + " of one";
  }
  if (sample.bytes.size() > bytes_left) {
    return "left out: " + size + ", a report keeps at most " + human_bytes(kMaxAllMedia) +
           " of all";
  }
  return "";
}

}  // namespace

MediaSample kept_media(const MediaSample& sample, size_t& bytes_left) {
  MediaSample kept{.mime = cut_text(sample.mime, kLongestMime),
                   .bytes = {},
                   .words = cut_text(sample.words, kMaxText),
                   .note = cut_text(sample.note, kMaxCell),
                   .rows = trimmed_rows(sample.rows)};
  if (sample.bytes.empty()) return kept;
  const std::string why = objection(sample, bytes_left);
  if (!why.empty()) {
    kept.note = cut_text(kept.note.empty() ? why : why + "; " + kept.note, kMaxCell);
    return kept;
  }
  kept.bytes = sample.bytes;
  bytes_left -= sample.bytes.size();
  return kept;
}

bool is_keepable(const MediaSample& sample) {
  return !sample.bytes.empty() && objection(sample, kMaxAllMedia).empty();
}

std::string render_media(const MediaSample& sample) {
  const std::string words = escape_html(sample.words, kMaxText);
  const std::string note =
      sample.note.empty() ? "" : "<small>" + escape_html(sample.note, kMaxCell) + "</small>";
  std::string out =
      "<figure class=\"media\"><figcaption dir=\"auto\">" + words + " " + note + "</figcaption>";
  if (is_keepable(sample)) {
    const std::string data = "src=\"data:" + sample.mime + ";base64," + base64(sample.bytes) + "\"";
    out += is_sound(sample.mime)
               ? "<audio controls=\"controls\" preload=\"metadata\" " + data + "></audio>"
               : "<img alt=\"" + words + "\" " + data + "/>";
  }
  return out + "</figure>";
}

size_t media_bytes(const std::vector<Sample>& samples) {
  size_t sum = 0;
  for (const Sample& sample : samples) {
    if (const auto* media = std::get_if<MediaSample>(&sample)) sum += media->bytes.size();
  }
  return sum;
}

bool has_sound(const std::vector<Sample>& samples) {
  size_t bytes_left = kMaxAllMedia;
  for (size_t i = 0; i < std::min(samples.size(), kMaxSamples); ++i) {
    const auto* media = std::get_if<MediaSample>(&samples[i]);
    if (media == nullptr || media->bytes.empty() || !objection(*media, bytes_left).empty())
      continue;
    if (is_sound(media->mime)) return true;
    bytes_left -= media->bytes.size();
  }
  return false;
}

}  // namespace stretto::report
