#include "data/documents/json_documents.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/documents/document_lines.h"

namespace stretto::data {

bool is_named_json_lines(std::string_view path) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  }
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

JsonDocuments::JsonDocuments(std::unique_ptr<ByteStream> bytes, std::string name, std::string key,
                             BadSamples* bad)
    : lines_(std::move(bytes), std::move(name)), key_(std::move(key)), bad_(bad) {}

JsonDocuments::JsonDocuments(const std::string& path, std::string key, BadSamples* bad)
    : lines_(path), key_(std::move(key)), bad_(bad) {}

void JsonDocuments::refuse(const std::string& what, const std::string& advice) const {
  throw SampleError(lines_.name(), ":" + std::to_string(lines_.line_number()) + ": " + what,
                    advice);
}

/// The text of the next line that is not blank.
bool JsonDocuments::next_text() {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (is_blank_line(line));
  nlohmann::json json;
  try {
    json = parse_json(line, lines_.name(), 0, static_cast<size_t>(lines_.line_number()));
  } catch (const Error& error) {
    throw SampleError::of({error.code(), error.what(),
                           "each line is a JSON object on its own, in which each key stands once: "
                           "repair or remove it"},
                          lines_.name());
  }
  if (!json.is_object()) {
    refuse(std::string("must be an object, is ") + json.type_name(),
           "each line is a JSON object on its own");
  }
  const auto found = json.find(key_);
  if (found == json.end()) {
    std::vector<std::string> keys;
    for (const auto& item : json.items()) keys.push_back(item.key());
    refuse("there is no `" + printable(key_) + "`",
           "set data.key; there are " + printable(join(keys, ", "), 1000));
  }
  if (!found->is_string()) {
    refuse("`" + printable(key_) + "` must be a string, is " + found->type_name(),
           "texts are strings");
  }
  text_ = found->get<std::string>();
  if (text_.find('\0') == std::string::npos) return true;
  refuse("`" + printable(key_) + "` has a NUL character", "remove it");
}

/// No other file goes with this one line by line.
SampleError JsonDocuments::with_advice(const SampleError& error) const {
  if (!lines_.refused_long()) return error;
  return {error.file(), error.fault(),
          "split this text into several objects, or give it in a file of its own, which "
          "data.format = \"documents\" reads whatever its length"};
}

bool JsonDocuments::next(std::string_view& text, bool& begins_document) {
  begins_document = true;
  while (true) {
    try {
      if (!next_text()) break;
      if (text_.empty() || (bad_ != nullptr && bad_->is_stopping())) continue;
      text = text_;
      return true;
    } catch (const SampleError& error) {
      const SampleError fault = with_advice(error);
      if (bad_ == nullptr) throw fault;
      bad_->add(fault);
    } catch (const Error&) {
      if (bad_ == nullptr || !bad_->is_stopping()) throw;
      break;  // the bad lines before it are told
    }
  }
  if (bad_ != nullptr && bad_->is_stopping()) bad_->end_file();
  return false;
}

}  // namespace stretto::data
