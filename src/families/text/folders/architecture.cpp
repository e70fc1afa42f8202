#include "families/text/folders/architecture.h"

#include <algorithm>

namespace stretto::interchange {
namespace {

constexpr std::array<const Architecture*, 3> kArchitectures{&kBert, &kRoberta, &kDistilBert};

constexpr std::array<ClassEnding, 5> kClassEndings{{{"Model", Head::kNone},
                                                    {"ForMaskedLM", Head::kMaskedTokens},
                                                    {"ForPreTraining", Head::kMaskedTokens},
                                                    {"ForSequenceClassification", Head::kLabels},
                                                    {"ForQuestionAnswering", Head::kSpans}}};

NamePair one_name(std::string_view theirs, const char* ours) {
  return {.theirs = {std::string(theirs)}, .ours = ours};
}

}  // namespace

std::span<const Architecture* const> architectures() {
  return kArchitectures;
}

std::span<const ClassEnding> class_endings() {
  return kClassEndings;
}

const Architecture* find_architecture(std::string_view model_type) {
  const auto* found =
      std::find_if(kArchitectures.begin(), kArchitectures.end(),
                   [&](const Architecture* known) { return known->model_type == model_type; });
  return found == kArchitectures.end() ? nullptr : *found;
}

std::vector<NamePair> names_of(const Architecture& architecture,
                               const ModelDescription& description, bool has_prefix) {
  const std::string_view left_out = has_prefix ? "" : architecture.prefix;
  const int64_t layers = description.num_layers();
  std::vector<NamePair> names;
  const auto add = [&](std::span<const NameRow> rows) {
    for (auto& pair : expand(rows, layers, left_out)) names.push_back(std::move(pair));
  };
  add(architecture.encoder);
  if (description.model.num_segments > 0) add(architecture.segments);
  if (description.head == Head::kNone && models::has_pooler(description.model)) {
    add(architecture.pooler);
  }
  add(architecture.heads[static_cast<size_t>(description.head)]);
  if (description.head == Head::kMaskedTokens && !description.model.tie_embeddings) {
    names.push_back(one_name(architecture.output_matrix, "head.output.weight"));
  }
  return names;
}

std::vector<NamePair> copies_of(const Architecture& architecture,
                                const ModelDescription& description) {
  std::vector<NamePair> copies;
  if (description.head != Head::kMaskedTokens) return copies;
  if (description.model.tie_embeddings) {
    copies.push_back(one_name(architecture.output_matrix, "encoder.embedding.weight"));
  }
  if (!architecture.output_bias_copy.empty()) {
    copies.push_back(one_name(architecture.output_bias_copy, "head.bias"));
  }
  return copies;
}

bool is_table_of_tokens(const std::string& name, const ModelDescription& description) {
  if (name == "encoder.embedding.weight") return true;
  return description.head == Head::kMaskedTokens &&
         (name == "head.output.weight" || name == "head.bias");
}

std::string class_name(const Architecture& architecture, Head head) {
  const auto* found = std::ranges::find(kClassEndings, head, &ClassEnding::head);
  return std::string(architecture.class_stem) + std::string(found->ending);
}

}  // namespace stretto::interchange
