#include "interchange/tensors.h"

#include <algorithm>
#include <cstring>

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

template <class Element, class Convert>
std::string converted(std::string_view bytes, Convert convert) {
  const size_t count = bytes.size() / sizeof(Element);
  std::string floats(count * sizeof(float), '\0');
  for (size_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, bytes.data() + i * sizeof(Element), sizeof(Element));
    const float value = convert(element);
    std::memcpy(floats.data() + i * sizeof(float), &value, sizeof(float));
  }
  return floats;
}

int64_t row_bytes(const TensorView& tensor) {
  const int64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
  return rows == 0 ? 0 : static_cast<int64_t>(tensor.bytes.size()) / rows;
}

TensorView without_rows(const TensorView& tensor, int64_t count, std::string_view where) {
  if (tensor.shape.empty() || tensor.shape[0] <= count) {
    misshapen(where, "`" + printable(tensor.name) + "` is " + shape_text(tensor.shape) +
                         ", and has more than " + counted(count, "row") + " in such a model");
  }
  TensorView rest = tensor;
  rest.shape[0] -= count;
  rest.bytes.remove_prefix(static_cast<size_t>(count * row_bytes(tensor)));
  return rest;
}

/// One below the other.
TensorView stacked(const std::vector<TensorView>& parts, std::deque<std::string>& bytes,
                   std::string_view where) {
  TensorView whole = parts.front();
  if (parts.size() == 1) return whole;
  std::string data;
  for (const TensorView& part : parts) {
    if (part.shape.empty() || part.shape != parts.front().shape) {
      misshapen(where, "`" + printable(part.name) + "` is " + shape_text(part.shape) + ", `" +
                           printable(parts.front().name) + "` " + shape_text(parts.front().shape));
    }
    data += part.bytes;
  }
  const auto times = static_cast<int64_t>(parts.size());
  if (__builtin_mul_overflow(whole.shape[0], times, &whole.shape[0])) {
    misshapen(where, "`" + printable(whole.name) + "` is " + shape_text(parts.front().shape));
  }
  whole.bytes = bytes.emplace_back(std::move(data));
  return whole;
}

const TensorView* find_named(const std::vector<TensorView>& tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace

void TensorList::add(std::string name, DType dtype, std::vector<int64_t> shape, std::string data) {
  const std::string& kept = bytes.emplace_back(std::move(data));
  tensors.push_back(
      {.name = std::move(name), .dtype = dtype, .shape = std::move(shape), .bytes = kept});
}

TensorView to_f32(const TensorView& tensor, std::deque<std::string>& bytes,
                  std::string_view where) {
  TensorView result = tensor;
  result.dtype = DType::kF32;
  switch (tensor.dtype) {
    case DType::kF32:
      break;
    case DType::kF16:
      result.bytes = bytes.emplace_back(converted<uint16_t>(tensor.bytes, distributed::from_f16));
      break;
    case DType::kBF16:
      result.bytes = bytes.emplace_back(converted<uint16_t>(tensor.bytes, distributed::from_bf16));
      break;
    case DType::kF64:
      result.bytes = bytes.emplace_back(
          converted<double>(tensor.bytes, [](double value) { return static_cast<float>(value); }));
      break;
    default:
      misshapen(where, "`" + printable(tensor.name) + "` is " +
                           std::string(store::name_of(tensor.dtype)) +
                           ", floating-point numbers are needed");
  }
  return result;
}

JoinedTensors joined(const TensorsByName& theirs, const std::vector<NamePair>& names,
                     int64_t skipped_rows, std::string_view where) {
  JoinedTensors result;
  for (const NamePair& pair : names) {
    std::vector<TensorView> parts;
    std::vector<std::string> absent;
    for (const auto& name : pair.theirs) {
      const auto found = theirs.find(name);
      if (found == theirs.end()) {
        absent.push_back(name);
        continue;
      }
      parts.push_back(to_f32(*found->second, result.list.bytes, where));
      result.taken.push_back(name);
    }
    if (!parts.empty() && !absent.empty()) {
      misshapen(where, "`" + printable(parts.front().name) + "` is there, but `" + absent.front() +
                           "` is not");
    }
    if (parts.empty()) {
      result.missing.push_back(pair.ours);
      result.not_found.insert(result.not_found.end(), absent.begin(), absent.end());
      continue;
    }
    TensorView whole = stacked(parts, result.list.bytes, where);
    if (pair.skips_rows) whole = without_rows(whole, skipped_rows, where);
    whole.name = pair.ours;
    result.list.tensors.push_back(std::move(whole));
  }
  return result;
}

TensorList separated(const std::vector<TensorView>& ours, const std::vector<NamePair>& names,
                     int64_t skipped_rows, std::string_view where) {
  TensorList list;
  for (const NamePair& pair : names) {
    const TensorView* found = find_named(ours, pair.ours);
    if (found == nullptr) misshapen(where, "there is no `" + pair.ours + "`");
    TensorView whole = to_f32(*found, list.bytes, where);
    if (pair.skips_rows) {
      std::string data(static_cast<size_t>(skipped_rows * row_bytes(whole)), '\0');
      data += whole.bytes;
      whole.shape[0] += skipped_rows;
      whole.bytes = list.bytes.emplace_back(std::move(data));
    }
    const auto count = static_cast<int64_t>(pair.theirs.size());
    if (count > 1) {
      if (whole.shape.empty() || whole.shape[0] % count != 0) {
        misshapen(where, "`" + pair.ours + "` is " + shape_text(whole.shape));
      }
      whole.shape[0] /= count;
    }
    const size_t step = whole.bytes.size() / static_cast<size_t>(count);
    for (size_t i = 0; i < pair.theirs.size(); ++i) {
      TensorView part = whole;
      part.name = pair.theirs[i];
      part.bytes = whole.bytes.substr(i * step, step);
      list.tensors.push_back(std::move(part));
    }
  }
  return list;
}

}  // namespace stretto::interchange
