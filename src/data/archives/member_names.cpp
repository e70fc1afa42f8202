#include "data/archives/member_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace stretto::data {

std::string member_path(std::string_view name, std::string& fault) {
  fault.clear();
  if (name.starts_with('/')) fault = "its name is absolute";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(name.begin(), name.end(), is_control)) {
    fault = "its name has a control character";
  }
  std::string path;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    at = end + 1;
    if (part == "..") fault = "its name leads out of the archive";
    if (part.empty() || part == ".") continue;
    if (!path.empty()) path += '/';
    path += part;
  }
  if (path.empty() && fault.empty()) fault = "it has no name";
  return path;
}

bool is_hidden_path(std::string_view path) {
  return path.starts_with('.') || path.find("/.") != std::string_view::npos;
}

std::string_view folder_of_path(std::string_view path) {
  const size_t end = path.rfind('/');
  return end == std::string_view::npos ? std::string_view() : path.substr(0, end);
}

std::string_view last_of_path(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

ShardName shard_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  if (dot == std::string_view::npos) return {.key = path, .field = {}};
  std::string field(path.substr(dot + 1));
  std::transform(field.begin(), field.end(), field.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return {.key = path.substr(0, dot), .field = std::move(field)};
}

bool is_picture_field(std::string_view field) {
  constexpr std::array<std::string_view, 12> kPictures{
      "jpg", "jpeg", "png", "webp", "image", "img", "ppm", "pgm", "bmp", "gif", "tif", "tiff"};
  return std::find(kPictures.begin(), kPictures.end(), field) != kPictures.end();
}

}  // namespace stretto::data
