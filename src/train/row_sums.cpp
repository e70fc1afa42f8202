#include "train/row_sums.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "train/tensor_buffer.h"

namespace stretto::train {
namespace {

std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor ids_from(const std::string& bytes) {
  at::Tensor ids = at::empty({static_cast<int64_t>(bytes.size() / sizeof(int64_t))}, at::kLong);
  std::memcpy(ids.mutable_data_ptr(), bytes.data(), bytes.size());
  return ids;
}

}  // namespace

/// One table's rows.
class RowSums::Table : public nn::RowGradients {
 public:
  Table(optim::Arena& arena, size_t slot)
      : slot(slot),
        gradient_(optim::Arena::view(arena.grads(), arena.slots()[slot])),
        width_(gradient_.size(1)) {}

  void looked_up(const at::Tensor& ids) override {
    const std::lock_guard lock(mutex_);
    if (keep_) asked_.push_back(ids);
  }

  void add(const at::Tensor& ids, const at::Tensor& rows) override {
    const at::NoGradGuard no_grad;
    const std::lock_guard lock(mutex_);
    const at::Tensor own = rows.to(gradient_.scalar_type());
    if (keep_) {
      ids_.push_back(ids);
      rows_.push_back(own);
    } else {
      gradient_.index_add_(0, ids, own);
    }
  }

  void begin() {
    keep_ = false;
    asked_.clear();
    ids_.clear();
    rows_.clear();
    dense_ids_ = dense_rows_ = at::Tensor();
  }
  void keep(bool wanted) { keep_ = wanted; }

  void remember() {
    if (asked_.empty()) return;
    dense_ids_ = std::get<0>(at::_unique(at::cat(asked_), /*sorted=*/true));
    dense_rows_ = gradient_.index_select(0, dense_ids_);
  }

  // Each row once, by rising id.
  std::pair<at::Tensor, at::Tensor> collected() const {
    if (ids_.empty()) {
      return {at::empty({0}, at::kLong), at::empty({0, width_}, gradient_.options())};
    }
    const auto [unique, place] = at::_unique(at::cat(ids_), /*sorted=*/true, /*inverse=*/true);
    at::Tensor sums = at::zeros({unique.numel(), width_}, gradient_.options());
    sums.index_add_(0, place, at::cat(rows_));
    return {unique, sums};
  }

  // |g + r|^2 - |g|^2 over the rows r that were kept.
  double added_squares(const at::Tensor& ids, const at::Tensor& rows) const {
    if (!dense_ids_.defined() || ids.numel() == 0) return 0;
    const at::Tensor dense = dense_rows_.index_select(0, at::searchsorted(dense_ids_, ids));
    return (rows.to(at::kDouble) * (2 * dense.to(at::kDouble) + rows)).sum().item<double>();
  }

  void add_to_arena(const at::Tensor& ids, const at::Tensor& rows) {
    if (ids.numel() > 0) gradient_.index_add_(0, ids, rows);
  }
  int64_t width() const { return width_; }

  const size_t slot;
  std::vector<at::Tensor> all_ids;  // by rank
  at::Tensor all_rows;              // one rank's after the other's

 private:
  at::Tensor gradient_;  // [V, D], of the arena
  int64_t width_;
  std::mutex mutex_;
  bool keep_ = false;
  std::vector<at::Tensor> asked_;
  std::vector<at::Tensor> ids_, rows_;
  at::Tensor dense_ids_, dense_rows_;  // rising ids, and the dense gradient of their rows
};

RowSums::RowSums(optim::Arena& arena, dist::ProcessGroup group, const torch::nn::Module& model)
    : arena_(arena), group_(std::move(group)) {
  for (const auto& module : model.modules(/*include_self=*/false)) {
    const auto embedding = std::dynamic_pointer_cast<nn::EmbeddingImpl>(module);
    if (!embedding) continue;
    for (size_t slot = 0; slot < arena_.slots().size(); ++slot) {
      if (!arena_.parameter(slot).is_same(embedding->weight)) continue;
      tables_.push_back(std::make_shared<Table>(arena_, slot));
      modules_.push_back(embedding);
      embedding->send_rows_to(tables_.back());
    }
  }
}

RowSums::~RowSums() {
  for (const auto& module : modules_) module->send_rows_to(nullptr);
}

bool RowSums::leave_tables_without(std::span<const int64_t> times) {
  const size_t before = tables_.size();
  for (size_t i = tables_.size(); i-- > 0;) {
    if (times[tables_[i]->slot] > 0) continue;
    modules_[i]->send_rows_to(nullptr);
    modules_.erase(modules_.begin() + static_cast<std::ptrdiff_t>(i));
    tables_.erase(tables_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return tables_.size() < before;
}

void RowSums::begin() {
  added_squares_ = 0;
  bytes_ = 0;
  for (const auto& table : tables_) table->begin();
}

void RowSums::keep(bool wanted) {
  for (const auto& table : tables_) table->keep(wanted);
}

void RowSums::remember(size_t slot) {
  for (const auto& table : tables_) {
    if (table->slot == slot) table->remember();
  }
}

void RowSums::exchange() {
  const at::NoGradGuard no_grad;
  for (const auto& table : tables_) {
    const auto [ids, rows] = table->collected();
    added_squares_ += table->added_squares(ids, rows);
    table->all_ids.clear();
    std::vector<int64_t> begins{0};
    for (const std::string& bytes : group_.all_gather_bytes(bytes_of(ids))) {
      table->all_ids.push_back(ids_from(bytes));
      begins.push_back(begins.back() + table->all_ids.back().numel() * table->width());
    }
    at::Tensor all = at::empty({begins.back()}, rows.options());
    const auto rank = static_cast<size_t>(group_.rank());
    all.narrow(0, begins[rank], rows.numel()).copy_(rows.view({-1}));
    group_.all_gather(buffer_of(all), begins);
    table->all_rows = all.view({-1, table->width()});
    bytes_ += static_cast<int64_t>(rows.nbytes() + ids.nbytes());
  }
}

void RowSums::apply() {
  const at::NoGradGuard no_grad;
  for (const auto& table : tables_) {
    int64_t first = 0;
    for (const at::Tensor& ids : table->all_ids) {
      table->add_to_arena(ids, table->all_rows.narrow(0, first, ids.numel()));
      first += ids.numel();
    }
  }
}

}  // namespace stretto::train
