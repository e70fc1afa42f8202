#include "store/quantised_file.h"

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace stretto::store {

static_assert(std::endian::native == std::endian::little, "scales are written as they lie");

namespace {

constexpr std::string_view kCodes = ".codes", kScales = ".scales", kZeros = ".zeros";
constexpr size_t kMaxDescriptionBytes = 100'000'000;  // as the header that it stands in

constexpr std::array<std::pair<QuantScope, std::string_view>, 3> kScopes{{
    {QuantScope::kTensor, "tensor"},
    {QuantScope::kRow, "row"},
    {QuantScope::kGroup, "group"},
}};

std::string part_of(std::string_view name, std::string_view part) {
  return std::string(name) + std::string(part);
}

std::string_view scope_text(QuantScope scope) {
  for (const auto& [known, text] : kScopes) {
    if (known == scope) return text;
  }
  return "";
}

std::optional<QuantScope> scope_of(const std::string& text) {
  for (const auto& [scope, known] : kScopes) {
    if (known == text) return scope;
  }
  return std::nullopt;
}

[[noreturn]] void bad_packed(std::string_view where, std::string_view name,
                             const std::string& what) {
  throw Error(ExitCode::kBadData,
              std::string(where) + ": the packed tensor `" + printable(name) + "`: " + what,
              "the file is damaged, or was not written by Stretto");
}

std::optional<std::vector<int64_t>> described_shape(const nlohmann::json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<int64_t> shape;
  for (const auto& n : json) {
    if (!n.is_number_unsigned() || n.get<uint64_t>() > uint64_t{INT64_MAX}) return std::nullopt;
    shape.push_back(n.get<int64_t>());
  }
  return shape;
}

QuantisedShape parse_description(const std::string& name, const nlohmann::json& json,
                                 std::string_view where) {
  constexpr size_t kKeys = 5;
  const bool has_all = json.is_object() && json.size() == kKeys && json.contains("bits") &&
                       json.contains("symmetric") && json.contains("scope") &&
                       json.contains("group_size") && json.contains("shape");
  if (!has_all || !json["bits"].is_number_unsigned() || !json["symmetric"].is_boolean() ||
      !json["scope"].is_string() || !json["group_size"].is_number_unsigned()) {
    bad_packed(where, name, "its description needs bits, symmetric, scope, group_size and shape");
  }
  const auto scope = scope_of(json["scope"].get<std::string>());
  auto shape = described_shape(json["shape"]);
  if (!scope || !shape) bad_packed(where, name, "its description has a bad scope or shape");
  constexpr uint64_t kMost = uint64_t{1} << 56;  // of bits and columns: wrong, but no overflow
  const uint64_t bits = json["bits"].get<uint64_t>(), group = json["group_size"].get<uint64_t>();
  if (bits > kMost || group > kMost) bad_packed(where, name, "its description has a huge number");
  QuantisedShape described;
  described.format = {.bits = static_cast<int64_t>(bits),
                      .symmetric = json["symmetric"].get<bool>(),
                      .scope = *scope,
                      .group_size = static_cast<int64_t>(group)};
  described.shape = std::move(*shape);
  const auto problem = packing_problem(described.format, described.shape);
  if (!problem.empty()) bad_packed(where, name, problem);
  return described;
}

/// The tensors of a file by their names.
using ByName = std::map<std::string_view, const TensorView*>;

std::string_view bytes_of_part(const ByName& stored, std::string_view name, std::string_view part,
                               DType dtype, const std::vector<int64_t>& shape,
                               std::string_view where) {
  const std::string full = part_of(name, part);
  const auto found = stored.find(full);
  if (found == stored.end()) bad_packed(where, name, "`" + printable(full) + "` is missing");
  const TensorView& tensor = *found->second;
  if (tensor.dtype != dtype || tensor.shape != shape) {
    bad_packed(where, name,
               "`" + printable(full) + "` is not " + std::string(name_of(dtype)) + " [" +
                   std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + "]");
  }
  return tensor.bytes;
}

QuantisedView find_parts(const ByName& stored, const std::string& name, QuantisedShape described,
                         std::string_view where) {
  if (stored.contains(name)) bad_packed(where, name, "is there without packing, too");
  QuantisedView view;
  view.format = described.format;
  view.shape = std::move(described.shape);
  const QuantLayout layout = view.layout();
  const std::vector<int64_t> of_codes{layout.rows, layout.row_bytes};
  const std::vector<int64_t> of_scales{layout.scale_rows, layout.groups};
  view.codes = bytes_of_part(stored, name, kCodes, DType::kU8, of_codes, where);
  view.scales = bytes_of_part(stored, name, kScales, DType::kF16, of_scales, where);
  if (!view.format.symmetric) {
    view.zeros = bytes_of_part(stored, name, kZeros, DType::kU8, of_scales, where);
  }
  if (const auto problem = bytes_problem(view); !problem.empty()) bad_packed(where, name, problem);
  return view;
}

}  // namespace

std::vector<TensorView> stored_tensors(const std::string& name, const QuantisedView& packed) {
  const QuantLayout layout = packed.layout();
  const std::vector<int64_t> of_scales{layout.scale_rows, layout.groups};
  std::vector<TensorView> tensors{
      {part_of(name, kCodes), DType::kU8, {layout.rows, layout.row_bytes}, packed.codes},
      {part_of(name, kScales), DType::kF16, of_scales, packed.scales}};
  if (!packed.format.symmetric) {
    tensors.push_back({part_of(name, kZeros), DType::kU8, of_scales, packed.zeros});
  }
  return tensors;
}

std::string quantised_metadata(const std::map<std::string, QuantisedShape>& tensors) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, described] : tensors) {
    json[name] = {{"bits", described.format.bits},
                  {"symmetric", described.format.symmetric},
                  {"scope", scope_text(described.format.scope)},
                  {"group_size", described.format.group_size},
                  {"shape", described.shape}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_packed(const SafetensorsFile& file) {
  return file.metadata().contains(std::string(kQuantisedKey));
}

QuantisedTensors::QuantisedTensors(const SafetensorsFile& file, std::string_view where) {
  const auto found = file.metadata().find(std::string(kQuantisedKey));
  if (found == file.metadata().end()) return;
  const std::string place = std::string(where) + ": " + std::string(kQuantisedKey);
  const auto json = parse_json(found->second, place, kMaxDescriptionBytes);
  if (!json.is_object()) {
    throw Error(ExitCode::kBadData, place + ": no description of packed tensors",
                "the file is damaged, or was not written by Stretto");
  }
  ByName stored;
  for (const auto& tensor : file.tensors()) stored.emplace(tensor.name, &tensor);
  for (const auto& [name, description] : json.items()) {
    const auto view = find_parts(stored, name, parse_description(name, description, where), where);
    for (const auto& part : stored_tensors(name, view)) parts_.insert(part.name);
    tensors_.emplace(name, view);
  }
}

std::vector<std::string> names_of_tensors(const SafetensorsFile& file, std::string_view where) {
  const QuantisedTensors packed(file, where);
  std::vector<std::string> names;
  for (const auto& tensor : file.tensors()) {
    if (!packed.has_part(tensor.name)) names.push_back(tensor.name);
  }
  for (const auto& [name, view] : packed.tensors()) names.push_back(name);
  return names;
}

const QuantisedView* QuantisedTensors::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace stretto::store
