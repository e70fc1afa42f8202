#include "runs/taken_weights.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "nn/adapter_options.h"
#include "runs/other_names.h"
#include "store/manifest.h"

namespace stretto::runs {
namespace {

/// A part of the weights as it lies in a file.
struct Part {
  std::vector<StoredTarget> targets;
  FoundWeights found;
  std::vector<std::string> entries_without;  ///< that take nothing, with what they looked for
  std::vector<std::string> of_other_pieces;  ///< matched tables, with the tables they would read
};

// Rows are looked up for the pieces of one vocabulary: in a table of another they are others'.
std::string other_pieces(const StoredTarget& target, const std::vector<MatchedTable>& matched) {
  if (target.matched == nullptr) return "";
  const auto there = std::find_if(matched.begin(), matched.end(), [&](const MatchedTable& table) {
    return table.parameter == target.stored_name;
  });
  if (there == matched.end() || there->vocabulary == target.matched->vocabulary) return "";
  return "`" + target.name + "` matches " + target.matched->vocabulary + " pieces, and `" +
         target.stored_name + "` has those of the " + there->vocabulary;
}

/// The names, in the file, that a tensor may have by an entry; empty = the entry does not mean it.
std::vector<std::string> stored_names(const TakenNames& entry, const optim::TensorName& tensor) {
  std::vector<std::string> names;
  if (optim::matches(entry.pattern, tensor.name))
    names.push_back(entry.name_in_source(tensor.name));
  for (const auto& other : tensor.also) {
    if (optim::matches(entry.pattern, other)) names.push_back(entry.name_in_source(other));
  }
  // The other run may tie what this one ties.
  if (!names.empty() && !optim::matches(entry.pattern, tensor.name)) names.push_back(tensor.name);
  return names;
}

std::vector<TakenNames> entries_of(const TakenWeights& taken) {
  std::vector<TakenNames> entries(taken.entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    if (const auto problem = read_taken_names(taken.entries[i], entries[i])) {
      throw Error(ExitCode::kUsage, "train.init_only: " + problem->what, problem->hint);
    }
  }
  return entries;
}

/// The entry that means a tensor, and the names that the file may have it under.
struct EntryMatch {
  size_t entry = 0;
  std::vector<std::string> names;  ///< empty: no entry means the tensor
};

// The first entry counts.
EntryMatch matching_entry(const std::vector<TakenNames>& entries, const std::string& name,
                          const TakenWeights& taken) {
  std::vector<optim::TensorName> tensor{{name}};
  optim::add_tied_names(taken.tied, tensor);
  for (size_t i = 0; i < entries.size(); ++i) {
    auto names = stored_names(entries[i], tensor.front());
    if (!names.empty()) return {i, std::move(names)};
  }
  return {};
}

// The first of these tensors that the file has; else null.
const store::TensorView* find_first(const store::SafetensorsFile& file,
                                    const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto* found = file.find(name)) return found;
  }
  return nullptr;
}

/// What an entry finds in the file.
struct EntryFinds {
  int64_t num_found = 0;
  std::vector<std::string> not_there;  ///< in `backquotes`
};

// Entries that take nothing, with what they looked for.
std::vector<std::string> empty_entries(const TakenWeights& taken,
                                       const std::vector<EntryFinds>& finds) {
  std::vector<std::string> empty;
  for (size_t i = 0; i < finds.size(); ++i) {
    if (finds[i].num_found > 0) continue;
    const std::string what = "`" + printable(taken.entries[i]) + "` takes nothing";
    empty.push_back(finds[i].not_there.empty()
                        ? what + ": entries before it, if any, have what it means"
                        : what + ", there is no " + join(finds[i].not_there, ", "));
  }
  return empty;
}

Part part_of(const store::SafetensorsFile& file, const optim::Arena& arena,
             const TakenWeights& taken, const std::vector<MatchedTable>& matched) {
  const auto entries = entries_of(taken);
  std::vector<EntryFinds> finds(entries.size());
  Part part;
  for (StoredTarget& target : weight_targets(arena, matched)) {
    const EntryMatch match = matching_entry(entries, target.name, taken);
    const auto* there = find_first(file, match.names);
    const std::string missing =
        there == nullptr && !match.names.empty() ? "`" + match.names.front() + "`" : "";
    if (there != nullptr) ++finds[match.entry].num_found;
    if (!missing.empty()) finds[match.entry].not_there.push_back(missing);
    const bool stays = there == nullptr || there->name == target.name;
    if (stays && taken.added.contains(target.name)) {
      ++part.found.num_added;
      continue;
    }
    ++part.found.num_tensors;
    if (!missing.empty()) part.found.missing.push_back(missing);
    if (there == nullptr) continue;
    target.stored_name = there->name;
    auto problem = other_pieces(target, matched);
    if (!problem.empty()) part.of_other_pieces.push_back(std::move(problem));
    part.targets.push_back(std::move(target));
  }
  part.entries_without = empty_entries(taken, finds);
  part.found.num_taken = static_cast<int64_t>(part.targets.size());
  return part;
}

bool is_replaceable(const TakenWeights& taken, const std::string& name) {
  return matches_any(taken.replaceable, name);
}

// train.init_only with what fits under another name; empty if there is none.
std::string init_only_advice(const store::SafetensorsFile& file,
                             const std::vector<StoredTarget>& wanted) {
  NamedShapes model, stored;
  for (const StoredTarget& target : wanted) model[target.name] = stored_shape(file, target);
  for (const auto& tensor : file.tensors()) stored[tensor.name] = tensor.shape;
  const auto entries = entries_for_other_names(model, stored);
  if (entries.empty()) return "";
  return "one of the two models has several parts where the other has one: train.init_only = "
         "[\"" +
         join(entries, "\", \"") + "\"] takes what fits, and the rest begins anew";
}

// Whether the file has adapters that the model has not, or has in another width.
bool has_other_adapters(const store::SafetensorsFile& file,
                        const std::vector<StoredTarget>& wanted) {
  NamedShapes own;
  for (const StoredTarget& target : wanted) own[target.name] = target.values.sizes().vec();
  return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const auto& tensor) {
    const auto found = own.find(tensor.name);
    return nn::is_adapter(tensor.name) && (found == own.end() || found->second != tensor.shape);
  });
}

// What to do where the weights of another run, or of a folder of transformers, do not fit.
std::string advice_for_mismatches(const store::SafetensorsFile& file, const std::string& where,
                                  const std::vector<StoredTarget>& wanted) {
  if (has_other_adapters(file, wanted)) {
    return "adapters cannot be merged into weights: give [model.adapter] the dim and parts of that "
           "run, or take the other tensors alone with train.init_only";
  }
  const std::string advice = init_only_advice(file, wanted);
  if (!advice.empty()) return advice;
  // InitialRun::weights_file(): a folder or a file of others, or the file of a checkpoint.
  std::error_code ignored;
  const auto manifest = std::filesystem::path(where).parent_path() / store::kManifestName;
  const bool is_imported = std::filesystem::is_directory(where, ignored) ||
                           (std::filesystem::is_regular_file(where, ignored) &&
                            !std::filesystem::exists(manifest, ignored));
  const std::string values =
      is_imported
          ? "leave [model] and [tokenizer] out: their keys then have the values of that folder"
          : "give [model] and [tokenizer] the values of that run (its config.toml)";
  return values + ", or take the tensors that fit alone with train.init_only";
}

// The error with other advice, which also says where to read what it leaves out.
Error advised(const Error& error, std::string advice) {
  if (!error.details().empty()) advice += "; `stretto check` lists every tensor that does not fit";
  return Error(error.code(), error.what(), std::move(advice), error.details());
}

// Makes a check of the weights; its error says what to do where they do not fit.
template <class Check>
void check_with_advice(const store::SafetensorsFile& file, const std::string& where,
                       const std::vector<StoredTarget>& wanted, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    throw advised(error, advice_for_mismatches(file, where, wanted));
  }
}

// Tensors that only the file has: they stay there, or are wrong.
void note_extra(const store::SafetensorsFile& file, const std::vector<StoredTarget>& wanted,
                const TakenWeights& taken, Part& part, std::vector<TensorMismatch>& wrong) {
  std::set<std::string> names;
  for (const StoredTarget& target : wanted) names.insert(target.name);
  for (const auto& tensor : file.tensors()) {
    if (names.contains(tensor.name)) continue;
    if (is_replaceable(taken, tensor.name)) {
      part.found.left_over.push_back(tensor.name);
    } else {
      wrong.push_back(unexpected_tensor(tensor.name));
    }
  }
}

// All weights but those of a part that the other run has otherwise.
Part all_but_replaceable(const store::SafetensorsFile& file, const std::string& where,
                         const optim::Arena& arena, const TakenWeights& taken,
                         const std::vector<MatchedTable>& matched) {
  const auto wanted = weight_targets(arena, matched);
  Part part;
  std::vector<TensorMismatch> wrong;
  for (const StoredTarget& target : wanted) {
    if (taken.added.contains(target.name)) {
      ++part.found.num_added;
      continue;
    }
    ++part.found.num_tensors;
    const auto problem = mismatch(file, target);
    if ((taken.replaces_all || problem) && is_replaceable(taken, target.name)) {
      part.found.anew.push_back(target.name);
      if (file.find(target.name) != nullptr) part.found.left_over.push_back(target.name);
    } else if (problem) {
      wrong.push_back(*problem);
    } else {
      part.targets.push_back(target);
    }
  }
  note_extra(file, wanted, taken, part, wrong);
  part.found.num_taken = static_cast<int64_t>(part.targets.size());
  check_with_advice(file, where, wanted, [&] { require_fit(wrong, where); });
  return part;
}

void require_part_fits(const store::SafetensorsFile& file, const std::string& where,
                       const Part& part) {
  if (!part.entries_without.empty()) {
    throw Error(ExitCode::kUsage,
                "train.init_only: " + join(part.entries_without, "; ") + " in " + where,
                "`PATTERN = SOURCE` takes tensors that have other names there");
  }
  if (!part.of_other_pieces.empty()) {
    throw Error(ExitCode::kUsage,
                "train.init_only: " + join(part.of_other_pieces, "; ") + " in " + where,
                "take each table from one of the same vocabulary, as in \"embedding.weight = "
                "decoder.embedding.weight\", or leave it out: its rows then begin anew");
  }
  std::vector<TensorMismatch> wrong;
  for (const StoredTarget& target : part.targets) {
    if (const auto problem = mismatch(file, target)) wrong.push_back(*problem);
  }
  if (wrong.empty()) return;
  throw advised(mismatch_error(where + ": does not fit this model", wrong, ""),
                "give the part the sizes that it has there, or let train.init_only leave these "
                "tensors out");
}

// What is taken of a file; throws where it does not fit.
Part fitting_part(const store::SafetensorsFile& file, const std::string& where,
                  const optim::Arena& arena, const TakenWeights& taken,
                  const std::vector<MatchedTable>& matched) {
  if (taken.entries.empty()) return all_but_replaceable(file, where, arena, taken, matched);
  Part part = part_of(file, arena, taken, matched);
  require_part_fits(file, where, part);
  return part;
}

}  // namespace

void require_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                         const optim::Arena& arena, const std::vector<MatchedTable>& matched) {
  const auto wanted = weight_targets(arena, matched);
  check_with_advice(file, where, wanted, [&] { require_all_fit(file, where, "", wanted); });
}

FoundWeights require_some_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                                      const optim::Arena& arena, const TakenWeights& taken,
                                      const std::vector<MatchedTable>& matched) {
  return fitting_part(file, where, arena, taken, matched).found;
}

FoundWeights load_some_weights(const store::SafetensorsFile& file, const std::string& where,
                               optim::Arena& arena, const TakenWeights& taken,
                               const std::vector<MatchedTable>& matched) {
  const Part part = fitting_part(file, where, arena, taken, matched);
  require_finite(file, where, part.targets);
  copy_all(file, part.targets);
  return part.found;
}

}  // namespace stretto::runs
