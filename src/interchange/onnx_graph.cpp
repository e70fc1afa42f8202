// Numbers of fields are those of onnx/onnx.proto.
#include "interchange/onnx_graph.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/durable_file.h"
#include "base/file.h"
#include "base/version.h"

namespace stretto::interchange {
namespace {

using store::ProtobufMessage;

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr const char *kOnnxModel = "model.onnx", *kOnnxData = "model.onnx_data";
constexpr int64_t kIrVersion = 8, kOpset = 17;
// Smaller weights stand in the model. Larger ones begin at multiples of it, so that they can be
// mapped.
constexpr uint64_t kOnnxPage = 4096;

/// TensorProto without values.
ProtobufMessage tensor_proto(const std::string& name, OnnxType type,
                             const std::vector<int64_t>& shape) {
  ProtobufMessage tensor;
  if (!shape.empty()) tensor.add_ints(1, shape);
  tensor.add_int(2, static_cast<int64_t>(type));
  tensor.add_bytes(8, name);
  return tensor;
}

ProtobufMessage entry_proto(const std::string& key, const std::string& value) {
  ProtobufMessage entry;
  entry.add_bytes(1, key);
  entry.add_bytes(2, value);
  return entry;
}

void add_external(uint64_t offset, uint64_t length, ProtobufMessage& tensor) {
  tensor.add_message(13, entry_proto("location", kOnnxData));
  tensor.add_message(13, entry_proto("offset", std::to_string(offset)));
  tensor.add_message(13, entry_proto("length", std::to_string(length)));
  tensor.add_int(14, 1);
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

/// ValueInfoProto of a tensor.
ProtobufMessage value_proto(const std::string& name, OnnxType type,
                            const std::vector<std::string>& sizes) {
  ProtobufMessage shape;
  for (const auto& size : sizes) {
    ProtobufMessage dimension;
    if (is_number(size)) {
      dimension.add_int(1, std::stoll(size));
    } else {
      dimension.add_bytes(2, size);
    }
    shape.add_message(1, dimension);
  }
  ProtobufMessage tensor, whole, value;
  tensor.add_int(1, static_cast<int64_t>(type));
  tensor.add_message(2, shape);
  whole.add_message(1, tensor);
  value.add_bytes(1, name);
  value.add_message(2, whole);
  return value;
}

ProtobufMessage attribute_proto(const OnnxAttribute& attribute) {
  constexpr int64_t kFloatAttribute = 1, kIntAttribute = 2, kIntsAttribute = 7;
  ProtobufMessage proto;
  proto.add_bytes(1, attribute.name);
  if (const auto* number = std::get_if<float>(&attribute.value)) {
    proto.add_float(2, *number);
    proto.add_int(20, kFloatAttribute);
  } else if (const auto* whole = std::get_if<int64_t>(&attribute.value)) {
    proto.add_int(3, *whole);
    proto.add_int(20, kIntAttribute);
  } else {
    proto.add_ints(8, std::get<std::vector<int64_t>>(attribute.value));
    proto.add_int(20, kIntsAttribute);
  }
  return proto;
}

ProtobufMessage node_proto(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<std::string>& outputs,
                           const std::vector<OnnxAttribute>& attributes) {
  ProtobufMessage node;
  for (const auto& input : inputs) node.add_bytes(1, input);
  for (const auto& output : outputs) node.add_bytes(2, output);
  node.add_bytes(3, outputs.front());
  node.add_bytes(4, op);
  for (const auto& attribute : attributes) node.add_message(5, attribute_proto(attribute));
  return node;
}

uint64_t bytes_of_type(OnnxType type) {
  if (type == OnnxType::kInt8) return sizeof(int8_t);
  return type == OnnxType::kFloat ? sizeof(float) : sizeof(int64_t);
}

uint64_t weight_bytes(OnnxType type, const std::vector<int64_t>& shape) {
  uint64_t bytes = bytes_of_type(type);
  for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

template <class Value>
std::string raw_bytes(const std::vector<Value>& values) {
  std::string bytes(values.size() * sizeof(Value), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

void OnnxGraph::add_input(const std::string& name, OnnxType type,
                          const std::vector<std::string>& sizes) {
  inputs_.push_back(value_proto(name, type, sizes));
}

void OnnxGraph::add_output(const std::string& name, const std::string& value, OnnxType type,
                           const std::vector<std::string>& sizes) {
  nodes_.push_back(node_proto("Identity", {value}, {name}, {}));
  outputs_.push_back(value_proto(name, type, sizes));
}

std::string OnnxGraph::add(const std::string& op, const std::vector<std::string>& inputs,
                           const std::vector<OnnxAttribute>& attributes) {
  return add_several(op, inputs, 1, attributes).front();
}

std::vector<std::string> OnnxGraph::add_several(const std::string& op,
                                                const std::vector<std::string>& inputs,
                                                size_t outputs,
                                                const std::vector<OnnxAttribute>& attributes) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(op + "_" + std::to_string(num_values_++));
  nodes_.push_back(node_proto(op, inputs, names, attributes));
  return names;
}

std::string OnnxGraph::constant(const std::string& name, OnnxType type,
                                const std::vector<int64_t>& shape, const std::string& bytes) {
  if (constants_.contains(name)) return name;
  ProtobufMessage tensor = tensor_proto(name, type, shape);
  tensor.add_bytes(9, bytes);
  constants_.emplace(name, std::move(tensor));
  return name;
}

std::string OnnxGraph::scalar(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return constant("scalar_" + std::to_string(bits), OnnxType::kFloat, {},
                  raw_bytes(std::vector<float>{value}));
}

std::string OnnxGraph::scalar_int(int64_t value) {
  return constant("int_" + std::to_string(value), OnnxType::kInt64, {},
                  raw_bytes(std::vector<int64_t>{value}));
}

std::string OnnxGraph::ints(const std::vector<int64_t>& values) {
  std::string name = "ints";
  for (const int64_t value : values) name += "_" + std::to_string(value);
  return constant(name, OnnxType::kInt64, {static_cast<int64_t>(values.size())}, raw_bytes(values));
}

std::string OnnxGraph::weight(const std::string& name, const std::vector<int64_t>& shape,
                              std::function<std::string()> make, OnnxType type) {
  weights_.emplace(name, Weight{.type = type, .shape = shape, .make = std::move(make)});
  return name;
}

void OnnxGraph::add_metadata(const std::string& key, const std::string& value) {
  metadata_.push_back(entry_proto(key, value));
}

ProtobufMessage OnnxGraph::model(const std::vector<ProtobufMessage>& weights) const {
  ProtobufMessage graph;
  for (const auto& node : nodes_) graph.add_message(1, node);
  graph.add_bytes(2, name_);
  for (const auto& [name, tensor] : constants_) graph.add_message(5, tensor);
  for (const auto& tensor : weights) graph.add_message(5, tensor);
  for (const auto& input : inputs_) graph.add_message(11, input);
  for (const auto& output : outputs_) graph.add_message(12, output);
  ProtobufMessage opset, whole;
  opset.add_bytes(1, "");
  opset.add_int(2, kOpset);
  whole.add_int(1, kIrVersion);
  whole.add_bytes(2, "stretto");
  whole.add_bytes(3, kVersion);
  whole.add_message(7, graph);
  whole.add_message(8, opset);
  for (const auto& entry : metadata_) whole.add_message(14, entry);
  return whole;
}

void OnnxGraph::write(const std::filesystem::path& folder) const {
  DurableFile data(folder / kOnnxData, "checkpoint");
  std::vector<ProtobufMessage> tensors;
  for (const auto& [name, weight] : weights_) {
    const std::string bytes = weight.make();
    if (bytes.size() != weight_bytes(weight.type, weight.shape)) {
      throw std::invalid_argument("[onnx] `" + name + "` was made of " +
                                  std::to_string(bytes.size()) +
                                  " bytes, which do not fit its shape");
    }
    ProtobufMessage tensor = tensor_proto(name, weight.type, weight.shape);
    if (bytes.size() < kOnnxPage) {
      tensor.add_bytes(9, bytes);
    } else {
      const uint64_t rest = data.size() % kOnnxPage;
      if (rest > 0) data.write(std::string(kOnnxPage - rest, '\0'));
      add_external(data.size(), bytes.size(), tensor);
      data.write(bytes);
    }
    tensors.push_back(std::move(tensor));
  }
  data.close();
  write_file_atomic(folder / kOnnxModel, model(tensors).bytes());
}

}  // namespace stretto::interchange
