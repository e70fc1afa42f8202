#include "runs/checkpoint_tensors.h"

#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "nn/adapter_options.h"
#include "optim/weight_average.h"
#include "runs/other_names.h"
#include "runs/tensors_fit.h"

namespace stretto::runs {
namespace {

void copy_into(const store::TensorView& source, at::Tensor target) {
  const torch::NoGradGuard no_grad;
  // from_blob wants a mutable pointer; the copy only reads.
  const auto stored = torch::from_blob(const_cast<char*>(source.bytes.data()),
                                       at::IntArrayRef(source.shape), at::kFloat);
  target.copy_(stored);
}

// What is wrong with a stored tensor, if it cannot be taken.
std::optional<TensorMisfit> mismatch(const store::SafetensorsFile& file,
                                     const std::string& stored_name, const std::string& name,
                                     const std::vector<int64_t>& shape) {
  const auto* found = file.find(stored_name);
  if (auto misfit = shape_misfit(found, name, shape)) return misfit;
  if (found->dtype == store::DType::kF32) return std::nullopt;
  return TensorMisfit{name, "is " + std::string(name_of(found->dtype)) + ", expected F32"};
}

/// A tensor that is to be filled from a file, under its name there.
struct Target {
  std::string stored_name, name;
  at::Tensor values;
  const MatchedTable* matched = nullptr;
};

// The shape that the file must have: a matched table's rows are the file's own, if they are enough.
std::vector<int64_t> stored_shape(const store::SafetensorsFile& file, const Target& target) {
  auto shape = target.values.sizes().vec();
  const auto* found = file.find(target.stored_name);
  if (target.matched == nullptr || found == nullptr || found->shape.empty()) return shape;
  const auto& rows = target.matched->rows;
  const int64_t last = rows.empty() ? -1 : *std::max_element(rows.begin(), rows.end());
  shape.front() = std::max(found->shape.front(), last + 1);
  return shape;
}

std::optional<TensorMisfit> mismatch(const store::SafetensorsFile& file, const Target& target) {
  return mismatch(file, target.stored_name, target.name, stored_shape(file, target));
}

void copy_matched(const store::TensorView& source, const MatchedTable& matched, at::Tensor target) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> from, to;
  for (size_t row = 0; row < matched.rows.size(); ++row) {
    if (matched.rows[row] < 0) continue;
    from.push_back(matched.rows[row]);
    to.push_back(static_cast<int64_t>(row));
  }
  const auto stored = torch::from_blob(const_cast<char*>(source.bytes.data()),
                                       at::IntArrayRef(source.shape), at::kFloat);
  const auto rows = stored.index_select(0, at::tensor(from, at::kLong));
  target.index_copy_(0, at::tensor(to, at::kLong).to(target.device()), rows.to(target.device()));
}

std::vector<Target> targets(const std::string& prefix, const optim::Arena& arena,
                            const at::Tensor& flat) {
  std::vector<Target> wanted;
  for (const auto& slot : arena.slots()) {
    wanted.push_back({prefix + slot.name, slot.name, optim::Arena::view(flat, slot)});
  }
  return wanted;
}

void require_all_fit(const store::SafetensorsFile& file, const std::string& where,
                     const std::string& prefix, const std::vector<Target>& wanted) {
  std::vector<TensorMisfit> wrong;
  std::set<std::string> names;
  for (const Target& target : wanted) {
    names.insert(target.stored_name);
    if (const auto misfit = mismatch(file, target)) wrong.push_back(*misfit);
  }
  for (const auto& tensor : file.tensors()) {
    if (tensor.name.starts_with(prefix) && !names.contains(tensor.name)) {
      wrong.push_back(extra_misfit(tensor.name));
    }
  }
  require_fit(wrong, where);
}

void copy_all(const store::SafetensorsFile& file, const std::vector<Target>& wanted) {
  for (const Target& target : wanted) {
    const auto& stored = *file.find(target.stored_name);
    if (target.matched != nullptr) {
      copy_matched(stored, *target.matched, target.values);
    } else {
      copy_into(stored, target.values);
    }
  }
}

// All of `wanted` or, when anything does not fit, nothing.
void load_all(const store::SafetensorsFile& file, const std::string& where,
              const std::string& prefix, const std::vector<Target>& wanted) {
  require_all_fit(file, where, prefix, wanted);
  copy_all(file, wanted);
}

std::vector<Target> weight_targets(const optim::Arena& arena,
                                   const std::vector<MatchedTable>& matched) {
  auto wanted = targets("", arena, arena.params());
  for (const auto& buffer : arena.buffers()) {
    wanted.push_back({buffer.name, buffer.name, buffer.values});
  }
  for (Target& target : wanted) {
    for (const auto& table : matched) {
      if (table.parameter == target.name) target.matched = &table;
    }
  }
  return wanted;
}

bool is_average(const optim::StateTensor& tensor) {
  return tensor.name == optim::kWeightAverage;
}

// In place of the average, which is the model, stand the weights that were trained.
std::string prefix_of(const optim::StateTensor& tensor) {
  return (is_average(tensor) ? "trained" : tensor.name) + "/";
}

void exchange(at::Tensor& one, at::Tensor other) {
  const torch::NoGradGuard no_grad;
  const at::Tensor kept = one.clone();
  one.copy_(other);
  other.copy_(kept);
}

void require_whole(const optim::StateTensor& tensor, const optim::Arena& arena) {
  TORCH_CHECK(!tensor.flat || tensor.values.numel() == arena.size(), "[checkpoint] state `",
              tensor.name, "` has ", tensor.values.numel(), " elements, the arena ", arena.size(),
              "; a checkpoint takes the state of the whole arena, not of a slice");
}

/// A part of the weights as it lies in a file.
struct Part {
  std::vector<Target> targets;
  FoundWeights found;
  std::vector<std::string> entries_without;  ///< that take nothing, with what they looked for
  std::vector<std::string> of_other_pieces;  ///< matched tables, with the tables they would read
};

// Rows are looked up for the pieces of one vocabulary: in a table of another they are others'.
std::string other_pieces(const Target& target, const std::vector<MatchedTable>& matched) {
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
  for (Target& target : weight_targets(arena, matched)) {
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
                             const std::vector<Target>& wanted) {
  NamedShapes model, stored;
  for (const Target& target : wanted) model[target.name] = stored_shape(file, target);
  for (const auto& tensor : file.tensors()) stored[tensor.name] = tensor.shape;
  const auto entries = entries_for_other_names(model, stored);
  if (entries.empty()) return "";
  return "one of the two models has several parts where the other has one: train.init_only = "
         "[\"" +
         join(entries, "\", \"") + "\"] takes what fits, and the rest begins anew";
}

// Whether the file has adapters that the model has not, or has in another width.
bool has_other_adapters(const store::SafetensorsFile& file, const std::vector<Target>& wanted) {
  NamedShapes own;
  for (const Target& target : wanted) own[target.name] = target.values.sizes().vec();
  return std::any_of(file.tensors().begin(), file.tensors().end(), [&](const auto& tensor) {
    const auto found = own.find(tensor.name);
    return nn::is_adapter(tensor.name) && (found == own.end() || found->second != tensor.shape);
  });
}

// What to do where the weights of another run do not fit.
std::string advice_for_misfits(const store::SafetensorsFile& file,
                               const std::vector<Target>& wanted) {
  if (has_other_adapters(file, wanted)) {
    return "adapters cannot be merged into weights: give [model.adapter] the dim and parts of that "
           "run, or take the other tensors alone with train.init_only";
  }
  const std::string advice = init_only_advice(file, wanted);
  if (!advice.empty()) return advice;
  return "give [model] and [tokenizer] the values of that run (its config.toml), or take the "
         "tensors "
         "that fit alone with train.init_only";
}

// The error with other advice, which also says where to read what it leaves out.
Error advised(const Error& error, std::string advice) {
  if (!error.details().empty()) advice += "; `stretto check` lists every tensor that does not fit";
  return Error(error.code(), error.what(), std::move(advice), error.details());
}

// Makes a check of the weights; its error says what to do where they do not fit.
template <class Check>
void check_with_advice(const store::SafetensorsFile& file, const std::vector<Target>& wanted,
                       Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    throw advised(error, advice_for_misfits(file, wanted));
  }
}

// Tensors that only the file has: they stay there, or are wrong.
void note_extra(const store::SafetensorsFile& file, const std::vector<Target>& wanted,
                const TakenWeights& taken, Part& part, std::vector<TensorMisfit>& wrong) {
  std::set<std::string> names;
  for (const Target& target : wanted) names.insert(target.name);
  for (const auto& tensor : file.tensors()) {
    if (names.contains(tensor.name)) continue;
    if (is_replaceable(taken, tensor.name)) {
      part.found.left_over.push_back(tensor.name);
    } else {
      wrong.push_back(extra_misfit(tensor.name));
    }
  }
}

// All weights but those of a part that the other run has otherwise.
Part all_but_replaceable(const store::SafetensorsFile& file, const std::string& where,
                         const optim::Arena& arena, const TakenWeights& taken,
                         const std::vector<MatchedTable>& matched) {
  const auto wanted = weight_targets(arena, matched);
  Part part;
  std::vector<TensorMisfit> wrong;
  for (const Target& target : wanted) {
    if (taken.added.contains(target.name)) {
      ++part.found.num_added;
      continue;
    }
    ++part.found.num_tensors;
    const auto misfit = mismatch(file, target);
    if ((taken.replaces_all || misfit) && is_replaceable(taken, target.name)) {
      part.found.anew.push_back(target.name);
      if (file.find(target.name) != nullptr) part.found.left_over.push_back(target.name);
    } else if (misfit) {
      wrong.push_back(*misfit);
    } else {
      part.targets.push_back(target);
    }
  }
  note_extra(file, wanted, taken, part, wrong);
  part.found.num_taken = static_cast<int64_t>(part.targets.size());
  check_with_advice(file, wanted, [&] { require_fit(wrong, where); });
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
  std::vector<TensorMisfit> wrong;
  for (const Target& target : part.targets) {
    if (const auto misfit = mismatch(file, target)) wrong.push_back(*misfit);
  }
  if (wrong.empty()) return;
  throw advised(misfits_error(where + ": does not fit this model", wrong, ""),
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

// `source` as it stands now, in `host`.
void copy_to_host(const at::Tensor& source, Snapshot::Bytes bytes, at::Tensor& host) {
  if (bytes == Snapshot::Bytes::kBorrowed) {
    host = source.detach().cpu().contiguous();  // itself where nothing is to be done
    return;
  }
  if (!host.defined() || host.sizes() != source.sizes()) {
    host = at::empty(source.sizes(), at::dtype(source.scalar_type()));
  }
  host.copy_(source);  // one pass over flat memory, on all threads
}

store::TensorView view_of(const std::string& name, const at::Tensor& host, int64_t offset,
                          std::vector<int64_t> shape, int64_t numel) {
  const char* begin = reinterpret_cast<const char*>(host.const_data_ptr<float>() + offset);
  return {name,
          store::DType::kF32,
          std::move(shape),
          {begin, static_cast<size_t>(numel) * sizeof(float)}};
}

void add_slots(const std::vector<optim::Arena::Slot>& slots, const at::Tensor& host,
               const std::string& prefix, std::vector<store::TensorView>& views) {
  for (const auto& slot : slots) {
    views.push_back(view_of(prefix + slot.name, host, slot.offset, slot.shape, slot.numel));
  }
}

}  // namespace

void require_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                         const optim::Arena& arena, const std::vector<MatchedTable>& matched) {
  const auto wanted = weight_targets(arena, matched);
  check_with_advice(file, wanted, [&] { require_all_fit(file, where, "", wanted); });
}

void load_weights(const store::SafetensorsFile& file, const std::string& where, optim::Arena& arena,
                  const std::vector<MatchedTable>& matched) {
  load_all(file, where, "", weight_targets(arena, matched));
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
  copy_all(file, part.targets);
  return part.found;
}

void load_optimizer_state(const store::SafetensorsFile& file, const std::string& where,
                          optim::Arena& arena, const std::vector<optim::StateTensor>& state) {
  for (const auto& tensor : state) {
    require_whole(tensor, arena);
    if (tensor.flat) {
      const std::string prefix = prefix_of(tensor);
      load_all(file, where, prefix, targets(prefix, arena, tensor.values));
      if (is_average(tensor)) exchange(arena.params(), tensor.values);
      continue;
    }
    const auto misfit = mismatch(file, tensor.name, tensor.name, {tensor.values.numel()});
    if (misfit) require_fit({*misfit}, where);
    copy_into(*file.find(tensor.name), tensor.values.view({-1}));
  }
}

void Snapshot::take(const optim::Arena& arena, const std::vector<optim::StateTensor>& state,
                    Bytes bytes) {
  const torch::NoGradGuard no_grad;
  for (const auto& tensor : state) require_whole(tensor, arena);
  slots_ = arena.slots();
  // Bytes that were borrowed must not be written to.
  if (bytes == Bytes::kBorrowed || !owns_bytes_) {
    params_ = at::Tensor();
    buffers_.clear();
    state_.clear();
  }
  owns_bytes_ = bytes == Bytes::kOwn;
  copy_to_host(arena.params(), bytes, params_);
  buffers_.resize(arena.buffers().size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].name = arena.buffers()[i].name;
    copy_to_host(arena.buffers()[i].values, bytes, buffers_[i].values);
  }
  state_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    state_[i].name = state[i].name;
    state_[i].flat = state[i].flat;
    copy_to_host(state[i].values, bytes, state_[i].values);
  }
}

std::vector<std::pair<std::string, std::vector<store::TensorView>>> Snapshot::files() const {
  std::vector<store::TensorView> model, optimizer;
  const auto average = std::find_if(state_.begin(), state_.end(), is_average);
  add_slots(slots_, average == state_.end() ? params_ : average->values, "", model);
  for (const auto& buffer : buffers_) {
    model.push_back(
        view_of(buffer.name, buffer.values, 0, buffer.values.sizes().vec(), buffer.values.numel()));
  }
  for (const auto& tensor : state_) {
    if (tensor.flat) {
      add_slots(slots_, is_average(tensor) ? params_ : tensor.values, prefix_of(tensor), optimizer);
    } else {
      const int64_t numel = tensor.values.numel();
      optimizer.push_back(view_of(tensor.name, tensor.values, 0, {numel}, numel));
    }
  }
  return {{"model", std::move(model)}, {"optimizer", std::move(optimizer)}};
}

}  // namespace stretto::runs
