#include "families/text/prepared_text.h"

#include <cstdint>
#include <utility>

#include "data/tokenizer_store.h"
#include "experiment/task_rules.h"
#include "families/text/text_rules.h"
#include "families/text/text_sections.h"
#include "families/text/text_size.h"

namespace stretto::experiment {
namespace {

// Read and encoded in about the time in which libtorch is loaded.
constexpr int64_t kPreparedBytes = int64_t{16} << 20;

}  // namespace

bool is_prepared(const Experiment& experiment, const std::vector<std::string>& files) {
  if (!experiment.train.init_from.empty() || takes_tokenizer_of_other_run(experiment)) return false;
  const auto bytes = plain_bytes(files);
  return bytes && *bytes <= kPreparedBytes;
}

std::shared_ptr<const text::Tokenizer> prepared_tokenizer(const Experiment& experiment,
                                                          text::LineSource& lines) {
  const TextSections sections = text_sections(experiment);
  auto made =
      data::open_tokenizers(sections.tokenizer->tokenizer_options(),
                            static_cast<uint64_t>(experiment.run.seed), &lines, sections.cache_dir);
  const TextRules& rules = text_rules_of(experiment);
  rules.require_tokenizer(experiment, *made.src);
  return rules.tokenizer_of_model(experiment, std::move(made.src));
}

}  // namespace stretto::experiment
