#include "families/language_model/engine/continued_samples.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "text/stream_decoder.h"

namespace stretto::tasks {
namespace {

// Tokens of a beginning, and behind it.
constexpr int64_t kMostBegin = 32, kMostBehind = 48;

/// Where samples begin: numbers of ids, ascending.
std::vector<uint64_t> places_in(const data::Documents& documents, int64_t count) {
  std::vector<uint64_t> places;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t place = documents.num_ids() / static_cast<uint64_t>(count) * static_cast<uint64_t>(i);
    if (documents.size() >= count) {
      int64_t document = documents.size() / count * i;
      while (document + 1 < documents.size() &&
             documents.begin(document) == documents.end(document)) {
        ++document;  // a blank line has nothing to show
      }
      place = documents.begin(document);
    }
    if (places.empty() || places.back() < place) places.push_back(place);
  }
  return places;
}

/// The ids from there on, to the end of the document or to the bound of what is shown.
std::vector<int64_t> ids_at(const data::Documents& documents, uint64_t place, int64_t separator) {
  std::vector<int64_t> ids;
  const auto most = static_cast<uint64_t>(kMostBegin + kMostBehind);
  documents.append(place, std::min(place + most, documents.num_ids()), ids);
  ids.erase(std::ranges::find(ids, separator), ids.end());
  return ids;
}

/// What ids say behind those of `begin`.
std::string text_behind(const text::Tokenizer& tokenizer, const std::vector<int64_t>& begin,
                        const std::vector<int64_t>& ids) {
  text::StreamDecoder decoder(tokenizer, begin);
  std::string text;
  for (const int64_t id : ids) text += decoder.add(id);
  return text + decoder.finish();
}

/// A page has no line ends within a text.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char byte : text) {
    if (byte == '\n') {
      line += "\u21B5 ";  // ↵
    } else {
      line += byte;
    }
  }
  return line;
}

}  // namespace

std::vector<report::Sample> continued_samples(const GeneratingModel& model,
                                              const text::Tokenizer& tokenizer,
                                              const data::Documents& documents,
                                              decoding::GenerationOptions options, int64_t count) {
  std::vector<report::Sample> samples;
  if (count < 1) return samples;
  const at::NoGradGuard no_grad;
  options.nbest = 1;
  options.max_new_tokens = std::min(options.max_new_tokens, kMostBehind);
  const Generator generator(model, tokenizer, std::move(options));
  std::vector<GenerationRequest> requests;
  std::vector<report::RowsSample> shown;
  for (const uint64_t place : places_in(documents, count)) {
    std::vector<int64_t> begin = ids_at(documents, place, tokenizer.specials().eos);
    const int64_t length = std::min(kMostBegin, std::ssize(begin) / 2);
    if (length == 0) continue;
    const std::vector<int64_t> behind(begin.begin() + length, begin.end());
    begin.resize(static_cast<size_t>(length));
    GenerationRequest request{.prompt = model.before, .line = std::ssize(requests)};
    request.prompt.insert(request.prompt.end(), begin.begin(), begin.end());
    if (generator.room(request) == 0) continue;
    requests.push_back(std::move(request));
    shown.push_back(
        {.rows = {{"text", on_one_line(tokenizer.decode(begin))},
                  {"the model goes on", ""},
                  {"the text goes on", on_one_line(text_behind(tokenizer, begin, behind))}}});
  }
  std::vector<const GenerationRequest*> all;
  for (const GenerationRequest& request : requests) all.push_back(&request);
  if (all.empty()) return samples;
  const auto found = generator.run(all);
  for (size_t i = 0; i < shown.size(); ++i) {
    if (!found[i].empty()) shown[i].rows[1].second = on_one_line(found[i].front().text);
    samples.emplace_back(std::move(shown[i]));
  }
  return samples;
}

}  // namespace stretto::tasks
