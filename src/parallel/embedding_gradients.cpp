#include "parallel/embedding_gradients.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "parallel/out_of_memory.h"
#include "parallel/tensor_buffer.h"

namespace stretto::parallel {
namespace {

constexpr int64_t kLeastRoom = 64;  // rows of each process

// table[ids[i]] += rows[i], one after the other, without asking for memory.
void add_rows(const at::Tensor& table, std::span<const int64_t> ids, const at::Tensor& rows) {
  AT_DISPATCH_FLOATING_TYPES(table.scalar_type(), "add_rows", [&] {
    const int64_t width = table.size(1);
    auto* to = table.mutable_data_ptr<scalar_t>();
    const auto* from = rows.const_data_ptr<scalar_t>();
    for (const int64_t id : ids) {
      scalar_t* row = to + id * width;
      for (int64_t i = 0; i < width; ++i) row[i] += from[i];
      from += width;
    }
  });
}

}  // namespace

/// One table's rows.
class EmbeddingGradients::Table : public nn::RowGradients {
 public:
  Table(const optim::Arena& arena, const at::Tensor& grads, size_t slot, int processes)
      : slot(slot),
        gradient_(optim::Arena::view(grads, arena.slots()[slot])),
        room_(at::empty({kLeastRoom * processes, gradient_.size(1)}, gradient_.options())) {}

  void looked_up(const at::Tensor& ids) override {
    const std::lock_guard lock(mutex_);
    if (keep_) asked_.push_back(ids);
  }

  void add(const at::Tensor& ids, const at::Tensor& rows) override {
    const at::NoGradGuard no_grad;
    const std::lock_guard lock(mutex_);
    const at::Tensor own = rows.to(gradient_.scalar_type()).contiguous();
    if (keep_) {
      kept_ids_.push_back(ids);
      kept_rows_.push_back(own);
    } else {
      const at::Tensor list = ids.contiguous();
      add_rows(gradient_, {list.const_data_ptr<int64_t>(), static_cast<size_t>(list.numel())}, own);
    }
  }

  void begin() {
    keep_ = false;
    asked_.clear();
    kept_ids_.clear();
    kept_rows_.clear();
    dense_ids_ = dense_rows_ = at::Tensor();
    ids_.clear();
    rows_ = gradient_.new_empty({0, gradient_.size(1)});
    make_room();
  }
  void keep(bool wanted) { keep_ = wanted; }

  void remember() {
    if (asked_.empty()) return;
    dense_ids_ = std::get<0>(at::_unique(at::cat(asked_), /*sorted=*/true));
    dense_rows_ = gradient_.index_select(0, dense_ids_);
  }

  // Each row once, by rising id. @return |g + r|^2 - |g|^2 over the rows r, g as remembered
  double prepare() {
    if (kept_ids_.empty()) return 0;
    const auto [unique, place] = at::_unique(at::cat(kept_ids_), /*sorted=*/true, /*inverse=*/true);
    at::Tensor sums = at::zeros({unique.numel(), gradient_.size(1)}, gradient_.options());
    const at::Tensor rows = at::cat(kept_rows_);
    add_rows(sums, {place.const_data_ptr<int64_t>(), static_cast<size_t>(place.numel())}, rows);
    double added = 0;
    if (dense_ids_.defined()) {
      const at::Tensor dense = dense_rows_.index_select(0, at::searchsorted(dense_ids_, unique));
      added = (sums.to(at::kDouble) * (2 * dense.to(at::kDouble) + sums)).sum().item<double>();
    }
    const auto* first = unique.const_data_ptr<int64_t>();
    ids_.assign(first, first + unique.numel());
    rows_ = sums;
    return added;
  }

  void exchange(const distributed::ProcessGroup& group) {
    // With the ids go the rows that fit here at once: all bring as many as the smallest room takes.
    const int64_t room = room_.size(0) / group.size();
    std::vector<int64_t> numbers{room};
    numbers.insert(numbers.end(), ids_.begin(), ids_.end());
    const std::string mine(reinterpret_cast<const char*>(numbers.data()),
                           numbers.size() * sizeof(int64_t));
    all_ids_.clear();
    at_once_ = room;
    longest_ = 0;
    for (const std::string& bytes : group.all_gather_bytes(mine)) {
      std::vector<int64_t> theirs(bytes.size() / sizeof(int64_t));
      std::memcpy(theirs.data(), bytes.data(), bytes.size());
      at_once_ = std::min(at_once_, theirs.front());
      all_ids_.emplace_back(theirs.begin() + 1, theirs.end());
      longest_ = std::max(longest_, static_cast<int64_t>(all_ids_.back().size()));
    }
    wanted_ = std::max(wanted_, longest_ + longest_ / 4);
    bring(group, 0);
  }

  void apply(const distributed::ProcessGroup& group) {
    for (int64_t first = 0; first < longest_; first += at_once_) {
      if (first > 0) bring(group, first);
      int64_t row = 0;
      for (const auto& ids : all_ids_) {
        const auto part = part_of(ids, first);
        const auto count = static_cast<int64_t>(part.size());
        add_rows(gradient_, part, room_.narrow(0, row, count));
        row += count;
      }
    }
  }

  int64_t bytes() const {
    return static_cast<int64_t>(rows_.nbytes() + ids_.size() * sizeof(int64_t));
  }

  const size_t slot;

 private:
  // Without memory the room stays as it is, and rows come in several turns.
  void make_room() {
    const int64_t processes = std::max<int64_t>(1, static_cast<int64_t>(all_ids_.size()));
    if (room_.size(0) >= wanted_ * processes) return;
    try {
      room_ = at::empty({wanted_ * processes, gradient_.size(1)}, gradient_.options());
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
    }
  }

  std::span<const int64_t> part_of(const std::vector<int64_t>& ids, int64_t first) const {
    const std::span<const int64_t> all(ids);
    const size_t begin = std::min(all.size(), static_cast<size_t>(first));
    return all.subspan(begin, std::min(all.size() - begin, static_cast<size_t>(at_once_)));
  }

  // Rows first .. first + at_once_ of every process, one process after the other.
  void bring(const distributed::ProcessGroup& group, int64_t first) {
    const int64_t width = gradient_.size(1);
    std::vector<int64_t> begins{0};
    for (const auto& ids : all_ids_) {
      begins.push_back(begins.back() + static_cast<int64_t>(part_of(ids, first).size()) * width);
    }
    const auto rank = static_cast<size_t>(group.rank());
    const int64_t own = (begins[rank + 1] - begins[rank]) / width;
    if (own > 0) {
      room_.narrow(0, begins[rank] / width, own).copy_(rows_.narrow(0, first, own));
    }
    auto buffer = buffer_of(room_);
    buffer.count = begins.back();
    group.all_gather(buffer, begins);
  }

  at::Tensor gradient_;  // [V, D], of the arena
  std::mutex mutex_;
  bool keep_ = false;
  std::vector<at::Tensor> asked_, kept_ids_, kept_rows_;
  at::Tensor dense_ids_, dense_rows_;          // rising ids, and the dense gradient of their rows
  std::vector<int64_t> ids_;                   // prepared: rising ids, and
  at::Tensor rows_;                            // [ids, D]
  at::Tensor room_;                            // where rows of all processes arrive
  std::vector<std::vector<int64_t>> all_ids_;  // by rank
  int64_t at_once_ = 0, longest_ = 0;          // rows of a process: in one turn, at most
  int64_t wanted_ = 0;                         // that would have been enough so far
};

EmbeddingGradients::EmbeddingGradients(optim::Arena& arena, distributed::ProcessGroup group,
                                       const torch::nn::Module& model)
    : arena_(arena), group_(std::move(group)) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    const auto embedding = std::dynamic_pointer_cast<nn::EmbeddingImpl>(module);
    if (!embedding) continue;
    for (size_t slot = 0; slot < arena_.slots().size(); ++slot) {
      if (!arena_.parameter(slot).is_same(embedding->weight)) continue;
      tables_.push_back(std::make_shared<Table>(arena_, arena_.grads(), slot, group_.size()));
      modules_.push_back(embedding);
      embedding->send_rows_to(tables_.back());
    }
  }
}

EmbeddingGradients::~EmbeddingGradients() {
  for (const auto& module : modules_) module->send_rows_to(nullptr);
}

bool EmbeddingGradients::leave_tables_without(std::span<const int64_t> times) {
  const size_t before = tables_.size();
  for (size_t i = tables_.size(); i-- > 0;) {
    if (times[tables_[i]->slot] > 0) continue;
    modules_[i]->send_rows_to(nullptr);
    modules_.erase(modules_.begin() + static_cast<std::ptrdiff_t>(i));
    tables_.erase(tables_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return tables_.size() < before;
}

void EmbeddingGradients::begin() {
  added_squares_ = 0;
  bytes_ = 0;
  for (const auto& table : tables_) table->begin();
}

void EmbeddingGradients::keep(bool wanted) {
  for (const auto& table : tables_) table->keep(wanted);
}

void EmbeddingGradients::remember(size_t slot) {
  for (const auto& table : tables_) {
    if (table->slot == slot) table->remember();
  }
}

void EmbeddingGradients::prepare() {
  const at::NoGradGuard no_grad;
  for (const auto& table : tables_) added_squares_ += table->prepare();
}

void EmbeddingGradients::exchange() {
  const at::NoGradGuard no_grad;
  for (const auto& table : tables_) {
    table->exchange(group_);
    bytes_ += table->bytes();
  }
}

void EmbeddingGradients::apply() {
  const at::NoGradGuard no_grad;
  for (const auto& table : tables_) table->apply(group_);
}

}  // namespace stretto::parallel
