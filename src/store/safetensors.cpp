#include "store/safetensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/allowance.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::store {
namespace {

constexpr size_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's bound
constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  int64_t size;
};
constexpr std::array<DTypeInfo, 10> kDTypes{{
    {DType::kF64, "F64", 8},
    {DType::kF32, "F32", 4},
    {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},
    {DType::kI64, "I64", 8},
    {DType::kI32, "I32", 4},
    {DType::kI16, "I16", 2},
    {DType::kI8, "I8", 1},
    {DType::kU8, "U8", 1},
    {DType::kBool, "BOOL", 1},
}};

const DTypeInfo& info(DType dtype) {
  for (const auto& entry : kDTypes) {
    if (entry.dtype == dtype) return entry;
  }
  throw std::logic_error("unknown dtype");
}

[[noreturn]] void bad_safetensors(std::string_view where, const std::string& what) {
  throw Error(ExitCode::kBadData, std::string(where) + ": not a valid safetensors file: " + what,
              "the file is damaged, cut off or of another kind");
}

/// One entry of the header, before its place in the data is checked.
struct Entry {
  TensorView view;
  uint64_t begin = 0, end = 0;
};

uint64_t offset_of(const nlohmann::json& value, std::string_view where, const std::string& name) {
  if (!value.is_number_unsigned()) bad_safetensors(where, "`" + name + "` has a bad offset");
  return value.get<uint64_t>();
}

// Bytes that a shape needs, nothing when they overflow, which could make a huge tensor look small.
std::optional<uint64_t> bytes_of(const std::vector<int64_t>& shape, DType dtype) {
  uint64_t bytes = 1;
  for (const int64_t n : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes)) return std::nullopt;
  }
  if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size_of(dtype)), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

std::vector<int64_t> parse_shape(const std::string& name, const nlohmann::json& json,
                                 std::string_view where) {
  if (!json.is_array()) bad_safetensors(where, "`" + name + "` has no list as shape");
  std::vector<int64_t> shape;
  for (const auto& n : json) {
    if (!n.is_number_unsigned() || n.get<uint64_t>() > uint64_t{INT64_MAX}) {
      bad_safetensors(where, "`" + name + "` has a bad shape");
    }
    shape.push_back(n.get<int64_t>());
  }
  return shape;
}

Entry parse_entry(const std::string& raw_name, const nlohmann::json& json, std::string_view where) {
  const std::string name = printable(raw_name);
  Entry entry;
  entry.view.name = raw_name;
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    bad_safetensors(where, "`" + name + "` needs dtype, shape and data_offsets");
  }
  const auto& dtype = json["dtype"];
  if (!dtype.is_string()) bad_safetensors(where, "`" + name + "` has a dtype that is no string");
  const auto* known = std::find_if(kDTypes.begin(), kDTypes.end(), [&](const DTypeInfo& d) {
    return dtype.get_ref<const std::string&>() == d.name;
  });
  if (known == kDTypes.end()) {
    bad_safetensors(where, "`" + name + "` has the unknown dtype `" +
                               printable(dtype.get_ref<const std::string&>(), 20) + "`");
  }
  entry.view.dtype = known->dtype;
  entry.view.shape = parse_shape(name, json["shape"], where);
  const auto& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) {
    bad_safetensors(where, "`" + name + "` needs two data_offsets");
  }
  entry.begin = offset_of(offsets[0], where, name);
  entry.end = offset_of(offsets[1], where, name);
  const auto needed = bytes_of(entry.view.shape, entry.view.dtype);
  if (!needed) bad_safetensors(where, "the shape of `" + name + "` is too large");
  if (entry.end < entry.begin || entry.end - entry.begin != *needed) {
    bad_safetensors(where, "the offsets of `" + name + "` do not fit its shape: bytes " +
                               std::to_string(entry.begin) + " to " + std::to_string(entry.end) +
                               ", " + std::to_string(*needed) + " are needed");
  }
  return entry;
}

// In order of place: no overlap, no hole, nothing beyond the end.
void place_entries(std::vector<Entry>& entries, std::string_view data, std::string_view where) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (auto& entry : entries) {
    if (entry.begin != expected) {
      bad_safetensors(where, std::string(entry.begin < expected ? "overlap" : "a hole") +
                                 " before `" + printable(entry.view.name) + "` at byte " +
                                 std::to_string(entry.begin));
    }
    if (entry.end > data.size()) {
      bad_safetensors(where, "`" + printable(entry.view.name) + "` ends at byte " +
                                 std::to_string(entry.end) + ", the data has " +
                                 std::to_string(data.size()));
    }
    entry.view.bytes = data.substr(entry.begin, entry.end - entry.begin);
    expected = entry.end;
  }
  if (expected != data.size()) {
    bad_safetensors(where, counted(static_cast<int64_t>(data.size() - expected), "byte") +
                               " after the last tensor");
  }
}

// Mistakes of the caller, not of the user.
void check_writable(const std::vector<StreamedTensor>& tensors) {
  std::set<std::string_view> names{"__metadata__"};
  for (const auto& entry : tensors) {
    const TensorView& tensor = entry.tensor;
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument("[safetensors] `" + printable(tensor.name) + "` " + what);
    };
    if (!is_valid_utf8(tensor.name)) fail("is not UTF-8");
    if (!names.insert(tensor.name).second) fail("is a name that is taken already");
    const bool negative =
        std::any_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t n) { return n < 0; });
    const auto bytes = bytes_of(tensor.shape, tensor.dtype);
    if (negative || !bytes || (!entry.make && *bytes != tensor.bytes.size())) {
      fail("has " + std::to_string(tensor.bytes.size()) + " bytes, which do not fit its shape");
    }
  }
}

std::string header_text(const std::vector<StreamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [tensor, make] : tensors) {
    const uint64_t size = bytes_of(tensor.shape, tensor.dtype).value();
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  return header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Length and header of tensors that stand in the order of their data.
std::string header_bytes(const std::vector<StreamedTensor>& ordered,
                         const std::map<std::string, std::string>& metadata) {
  const std::string text = header_text(ordered, metadata);
  // Spaces at the end of the header put the data at a multiple of 64 bytes.
  const size_t total = (text.size() + kLengthBytes + kAlignment - 1) / kAlignment * kAlignment;
  const uint64_t length = total - kLengthBytes;
  std::string header;
  for (size_t i = 0; i < kLengthBytes; ++i) header += static_cast<char>(length >> (8 * i) & 0xFF);
  header += text;
  header.resize(total, ' ');
  return header;
}

std::vector<StreamedTensor> in_order_of_data(std::vector<StreamedTensor> tensors) {
  check_writable(tensors);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const StreamedTensor& a, const StreamedTensor& b) {
                     return size_of(a.tensor.dtype) > size_of(b.tensor.dtype);
                   });
  return tensors;
}

void parse_metadata(const nlohmann::json& json, std::string_view where,
                    std::map<std::string, std::string>* metadata) {
  if (json.is_null()) return;  // the reference takes it for none
  if (!json.is_object()) bad_safetensors(where, "__metadata__ is not an object");
  for (const auto& [key, text] : json.items()) {
    if (!text.is_string()) bad_safetensors(where, "__metadata__ holds more than strings");
    if (metadata != nullptr) (*metadata)[key] = text.get<std::string>();
  }
}

}  // namespace

int64_t size_of(DType dtype) {
  return info(dtype).size;
}
std::string_view name_of(DType dtype) {
  return info(dtype).name;
}

int64_t TensorView::num_elements() const {
  // Unsigned, since a shape with a zero in it may multiply past the largest signed number before
  // it.
  uint64_t count = 1;
  for (const int64_t n : shape) count *= static_cast<uint64_t>(n);
  return static_cast<int64_t>(count);
}

std::vector<std::string_view> safetensors_chunks(const std::vector<TensorView>& tensors,
                                                 const std::map<std::string, std::string>& metadata,
                                                 std::string& header) {
  std::vector<StreamedTensor> whole;
  whole.reserve(tensors.size());
  for (const auto& tensor : tensors) whole.push_back({.tensor = tensor});
  const auto ordered = in_order_of_data(std::move(whole));
  header = header_bytes(ordered, metadata);
  std::vector<std::string_view> chunks{header};
  for (const auto& [tensor, make] : ordered) chunks.push_back(tensor.bytes);
  return chunks;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::string header;
  const auto chunks = safetensors_chunks(tensors, metadata, header);
  DurableFile file(path, "checkpoint");
  for (const std::string_view chunk : chunks) file.write(chunk);
  file.close();
}

void stream_safetensors(const std::filesystem::path& path,
                        const std::vector<StreamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  const auto ordered = in_order_of_data(tensors);
  DurableFile file(path, "checkpoint");
  file.write(header_bytes(ordered, metadata));
  for (const auto& [tensor, make] : ordered) {
    const std::string made = make ? make() : std::string();
    const std::string_view bytes = make ? std::string_view(made) : tensor.bytes;
    if (bytes.size() != bytes_of(tensor.shape, tensor.dtype)) {
      throw std::invalid_argument("[safetensors] `" + printable(tensor.name) + "` was made of " +
                                  std::to_string(bytes.size()) +
                                  " bytes, which do not fit its shape");
    }
    file.write(bytes);
  }
  file.close();
}

uint64_t safetensors_file_bytes(const std::vector<TensorView>& tensors,
                                const std::map<std::string, std::string>& metadata) {
  std::vector<StreamedTensor> without_bytes;
  without_bytes.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    without_bytes.push_back({.tensor = tensor, .make = [] { return std::string(); }});
  }
  const auto ordered = in_order_of_data(std::move(without_bytes));
  uint64_t size = header_bytes(ordered, metadata).size();
  for (const auto& entry : ordered) {
    size += bytes_of(entry.tensor.shape, entry.tensor.dtype).value();
  }
  return size;
}

size_t safetensors_header_bytes(std::string_view bytes, std::string_view where) {
  if (bytes.size() < kLengthBytes) bad_safetensors(where, "shorter than its 8-byte header length");
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  if (length > kMaxHeaderBytes) {
    bad_safetensors(where, "a header of " + human_bytes(length) + ", at most 100 MB are allowed");
  }
  if (length > bytes.size() - kLengthBytes)
    bad_safetensors(where, "the file ends inside the header");
  return kLengthBytes + static_cast<size_t>(length);
}

std::vector<TensorView> parse_safetensors(std::string_view bytes, std::string_view where,
                                          std::map<std::string, std::string>* metadata) {
  const size_t data_start = safetensors_header_bytes(bytes, where);
  const std::string_view header = bytes.substr(kLengthBytes, data_start - kLengthBytes);
  if (header.empty() || header.front() != '{')
    bad_safetensors(where, "the header is not a JSON object");
  const std::string place = std::string(where) + ": header";
  Allowance allowance(place);
  const auto json = parse_json(header, place, kMaxHeaderBytes, allowance);
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      parse_metadata(value, where, metadata);
    } else {
      entries.push_back(parse_entry(name, value, where));
      const auto& view = entries.back().view;
      allowance.take(2 * sizeof(Entry) + view.name.size() + view.shape.size() * sizeof(int64_t),
                     "its list of tensors");
    }
  }
  place_entries(entries, bytes.substr(data_start), where);
  std::vector<TensorView> tensors;
  tensors.reserve(entries.size());
  for (auto& entry : entries) tensors.push_back(std::move(entry.view));
  return tensors;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  tensors_ = parse_safetensors(file_.bytes(), path.string(), &metadata_);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  for (const auto& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::string_view SafetensorsFile::header() const {
  if (file_.size() == 0) return {};
  return file_.bytes().substr(0, safetensors_header_bytes(file_.bytes(), "header"));
}

void SafetensorsFile::forget(const TensorView& tensor) const {
  const std::string_view all = file_.bytes();
  const bool is_mapped = tensor.bytes.data() >= all.data() &&
                         tensor.bytes.data() + tensor.bytes.size() <= all.data() + all.size();
  if (is_mapped) file_.forget(tensor.bytes);
}

}  // namespace stretto::store
