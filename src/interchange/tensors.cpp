#include "interchange/tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "distributed/half.h"

namespace stretto::interchange {
namespace {

using store::DType;
using store::TensorView;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

[[noreturn]] void misshapen(std::string_view where, const std::string& what) {
  throw Error(ExitCode::kBadData, std::string(where) + ": " + what,
              "the weights are not those of the model that config.json describes");
}

constexpr size_t kTile = 32;  // of a matrix that is transposed: 4 KiB of floats stay in a cache

/// Elements as floats, one behind the other. @param out  has room for all of them
template <class Element, class Convert>
void write_floats(const TensorView& tensor, bool transposed, char* out, const Convert& convert) {
  const char* in = tensor.bytes.data();
  const auto put = [&](size_t to, size_t from) {
    Element element;
    std::memcpy(&element, in + from * sizeof(Element), sizeof(Element));
    const float value = convert(element);
    std::memcpy(out + to * sizeof(float), &value, sizeof(float));
  };
  if (!transposed) {
    for (size_t i = 0; i < tensor.bytes.size() / sizeof(Element); ++i) put(i, i);
    return;
  }
  const auto rows = static_cast<size_t>(tensor.shape[0]),
             columns = static_cast<size_t>(tensor.shape[1]);
  for (size_t top = 0; top < rows; top += kTile) {
    for (size_t left = 0; left < columns; left += kTile) {
      for (size_t r = top; r < std::min(top + kTile, rows); ++r) {
        for (size_t c = left; c < std::min(left + kTile, columns); ++c) {
          put(c * rows + r, r * columns + c);
        }
      }
    }
  }
}

/// The same of any dtype that require_floats() lets through, behind what `out` has.
void append_floats(const TensorView& tensor, bool transposed, std::string& out) {
  const size_t count = tensor.bytes.size() / static_cast<size_t>(store::size_of(tensor.dtype));
  const size_t begin = out.size();
  out.resize(begin + count * sizeof(float));
  char* to = out.data() + begin;
  switch (tensor.dtype) {
    case DType::kF16:
      write_floats<uint16_t>(tensor, transposed, to, distributed::from_f16);
      break;
    case DType::kBF16:
      write_floats<uint16_t>(tensor, transposed, to, distributed::from_bf16);
      break;
    case DType::kF64:
      write_floats<double>(tensor, transposed, to,
                           [](double value) { return static_cast<float>(value); });
      break;
    default:
      write_floats<uint32_t>(tensor, transposed, to,
                             [](uint32_t bits) { return std::bit_cast<float>(bits); });
  }
}

void require_floats(const TensorView& tensor, std::string_view where) {
  if (tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16 ||
      tensor.dtype == DType::kF64) {
    return;
  }
  misshapen(where, "`" + printable(tensor.name) + "` is " +
                       std::string(store::name_of(tensor.dtype)) +
                       ", floating-point numbers are needed");
}

void require_matrix(const TensorView& tensor, std::string_view where) {
  if (tensor.shape.size() == 2) return;
  misshapen(where, "`" + printable(tensor.name) + "` is " + shape_text(tensor.shape) +
                       ", a matrix is needed");
}

int64_t row_elements(const TensorView& tensor) {
  const int64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  return rows == 0
             ? 0
             : static_cast<int64_t>(tensor.bytes.size()) / store::size_of(tensor.dtype) / rows;
}

TensorView without_rows(const TensorView& tensor, int64_t count, std::string_view where) {
  if (tensor.shape.empty() || tensor.shape[0] <= count) {
    misshapen(where, "`" + printable(tensor.name) + "` is " + shape_text(tensor.shape) +
                         ", and has more than " + counted(count, "row") + " in such a model");
  }
  TensorView rest = tensor;
  rest.shape[0] -= count;
  rest.bytes.remove_prefix(static_cast<size_t>(count * row_elements(tensor)) * sizeof(float));
  return rest;
}

/// Parts that are equal, or have rows of their own, stand one below the other. Returns the rows of
/// all.
int64_t joined_rows(const std::vector<const TensorView*>& parts,
                    const std::vector<int64_t>& part_rows, int64_t rows, std::string_view where) {
  const TensorView& first = *parts.front();
  if (parts.size() == 1) return rows;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<int64_t> wanted = first.shape;
    if (!wanted.empty() && !part_rows.empty()) wanted[0] = part_rows[i];
    if (!wanted.empty() && parts[i]->shape == wanted) continue;
    misshapen(where, "`" + printable(parts[i]->name) + "` is " + shape_text(parts[i]->shape) +
                         (part_rows.empty() ? ", `" + printable(first.name) + "` "
                                            : ", and in such a model ") +
                         shape_text(wanted));
  }
  if (!part_rows.empty()) return std::accumulate(part_rows.begin(), part_rows.end(), int64_t{0});
  int64_t all = 0;
  if (__builtin_mul_overflow(rows, static_cast<int64_t>(parts.size()), &all)) {
    misshapen(where, "`" + printable(first.name) + "` is " + shape_text(first.shape));
  }
  return all;
}

/// One below the other, each transposed where the pair says so.
TensorView stacked(const std::vector<const TensorView*>& parts, bool transposed,
                   const std::vector<int64_t>& part_rows, std::deque<std::string>& bytes,
                   std::string_view where) {
  TensorView whole = *parts.front();
  whole.dtype = DType::kF32;
  if (transposed) {
    require_matrix(whole, where);
    std::swap(whole.shape[0], whole.shape[1]);
  }
  if (parts.size() == 1 && !transposed && parts.front()->dtype == DType::kF32) return whole;
  const int64_t first_rows = whole.shape.empty() ? 0 : whole.shape[0];
  const int64_t rows = joined_rows(parts, part_rows, first_rows, where);
  if (!whole.shape.empty()) whole.shape[0] = rows;
  size_t elements = 0;
  for (const TensorView* part : parts) {
    elements += part->bytes.size() / static_cast<size_t>(store::size_of(part->dtype));
  }
  std::string& data = bytes.emplace_back();
  data.reserve(elements * sizeof(float));
  for (const TensorView* part : parts) append_floats(*part, transposed, data);
  whole.bytes = data;
  return whole;
}

const TensorView* find_named(const std::vector<TensorView>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

/// The rows of each of theirs in ours; nothing where it is one.
std::vector<int64_t> separated_rows(const TensorView& ours, const NamePair& pair,
                                    std::string_view where) {
  const auto count = static_cast<int64_t>(pair.theirs.size());
  if (count == 1) return {};
  std::vector<int64_t> rows = pair.part_rows;
  const int64_t all = ours.shape.empty() ? -1 : ours.shape[0];
  if (rows.empty()) rows.assign(pair.theirs.size(), all / count);
  if (all >= 0 && std::accumulate(rows.begin(), rows.end(), int64_t{0}) == all) return rows;
  misshapen(where, "`" + pair.ours + "` is " + shape_text(ours.shape));
}

/// A part of ours as one of theirs, without a name.
store::StreamedTensor as_theirs(const TensorView& part, const NamePair& pair, int64_t zero_rows) {
  store::StreamedTensor theirs{.tensor = part};
  theirs.tensor.dtype = DType::kF32;
  if (zero_rows == 0 && !pair.transposed && part.dtype == DType::kF32) return theirs;
  theirs.tensor.bytes = {};
  const int64_t row = row_elements(part);
  if (zero_rows > 0) theirs.tensor.shape[0] += zero_rows;
  if (pair.transposed) std::swap(theirs.tensor.shape[0], theirs.tensor.shape[1]);
  theirs.make = [part, zeros = static_cast<size_t>(zero_rows * row) * sizeof(float),
                 transposed = pair.transposed] {
    std::string bytes(zeros, '\0');
    append_floats(part, transposed, bytes);
    return bytes;
  };
  return theirs;
}

}  // namespace

TensorView to_f32(const TensorView& tensor, std::deque<std::string>& bytes,
                  std::string_view where) {
  require_floats(tensor, where);
  return stacked({&tensor}, /*transposed=*/false, {}, bytes, where);
}

JoinedTensors joined(const TensorsByName& theirs, const std::vector<NamePair>& names,
                     int64_t skipped_rows, std::string_view where) {
  JoinedTensors result;
  for (const NamePair& pair : names) {
    std::vector<const TensorView*> parts;
    std::vector<std::string> absent;
    for (const auto& name : pair.theirs) {
      const auto found = theirs.find(name);
      if (found == theirs.end()) {
        absent.push_back(name);
        continue;
      }
      require_floats(*found->second, where);
      parts.push_back(found->second);
      result.taken.push_back(name);
    }
    if (!parts.empty() && !absent.empty()) {
      misshapen(where, "`" + printable(parts.front()->name) + "` is there, but `" + absent.front() +
                           "` is not");
    }
    if (parts.empty()) {
      result.missing.push_back(pair.ours);
      result.not_found.insert(result.not_found.end(), absent.begin(), absent.end());
      continue;
    }
    TensorView whole = stacked(parts, pair.transposed, pair.part_rows, result.list.bytes, where);
    if (pair.skips_rows) whole = without_rows(whole, skipped_rows, where);
    whole.name = pair.ours;
    result.list.tensors.push_back(std::move(whole));
  }
  return result;
}

std::vector<store::StreamedTensor> separated(const std::vector<TensorView>& ours,
                                             const std::vector<NamePair>& names,
                                             int64_t skipped_rows, std::string_view where) {
  std::vector<store::StreamedTensor> list;
  for (const NamePair& pair : names) {
    const TensorView* found = find_named(ours, pair.ours);
    if (found == nullptr) misshapen(where, "there is no `" + pair.ours + "`");
    require_floats(*found, where);
    if (pair.transposed) require_matrix(*found, where);
    const auto rows = separated_rows(*found, pair, where);
    const size_t all = found->bytes.size();
    size_t begin = 0;
    for (size_t i = 0; i < pair.theirs.size(); ++i) {
      TensorView part = *found;
      if (!rows.empty()) part.shape[0] = rows[i];
      const size_t size = rows.empty() ? all
                                       : static_cast<size_t>(rows[i] * row_elements(*found)) *
                                             static_cast<size_t>(store::size_of(found->dtype));
      part.bytes = found->bytes.substr(begin, size);
      begin += size;
      list.push_back(as_theirs(part, pair, i == 0 && pair.skips_rows ? skipped_rows : 0));
      list.back().tensor.name = pair.theirs[i];
    }
  }
  return list;
}

}  // namespace stretto::interchange
