#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/protobuf.h"

namespace stretto::interchange {

/// Types of values, with the numbers of ONNX.
enum class OnnxType : int64_t { kFloat = 1, kInt8 = 3, kInt64 = 7 };

/// A named setting of a node.
struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

/// A graph of ONNX operators (https://onnx.ai, opset 17, IR version 8) that is written as
/// `model.onnx`, with the larger weights beside it in `model.onnx_data`, since a protobuf holds at
/// most 2 GiB. Values are named; nodes are added in the order in which they compute.
///
///     OnnxGraph graph("encoder");
///     graph.add_input("ids", OnnxType::kInt64, {"batch", "sequence"});
///     const auto rows = graph.add("Gather", {table, "ids"});
///     graph.add_output("rows", rows, OnnxType::kFloat, {"batch", "sequence", "768"});
class OnnxGraph {
 public:
  explicit OnnxGraph(std::string name) : name_(std::move(name)) {}

  /// @param sizes  a number, or the name of a size that is known when the model runs
  void add_input(const std::string& name, OnnxType type, const std::vector<std::string>& sizes);
  /// @param value  that has this name outside
  void add_output(const std::string& name, const std::string& value, OnnxType type,
                  const std::vector<std::string>& sizes);
  /// A node with one output. Returns the name of that.
  std::string add(const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {});
  /// A node with several outputs. Returns their names.
  std::vector<std::string> add_several(const std::string& op,
                                       const std::vector<std::string>& inputs, size_t outputs,
                                       const std::vector<OnnxAttribute>& attributes = {});

  /// Constants of the graph; an equal one is made once.
  std::string scalar(float value);
  std::string scalar_int(int64_t value);
  std::string ints(const std::vector<int64_t>& values);  ///< int64 [values]
  /// An fp32 tensor, or one of another type, whose bytes are made when the graph is written. One of
  /// a name that is there already is that.
  std::string weight(const std::string& name, const std::vector<int64_t>& shape,
                     std::function<std::string()> make, OnnxType type = OnnxType::kFloat);

  void add_metadata(const std::string& key, const std::string& value);

  /// Writes both files into a folder. Throws Error(kIo); std::invalid_argument for a weight that
  /// was made of other bytes than its shape says.
  void write(const std::filesystem::path& folder) const;

 private:
  struct Weight {
    OnnxType type = OnnxType::kFloat;
    std::vector<int64_t> shape;
    std::function<std::string()> make;
  };

  std::string constant(const std::string& name, OnnxType type, const std::vector<int64_t>& shape,
                       const std::string& bytes);
  store::ProtobufMessage model(const std::vector<store::ProtobufMessage>& weights) const;

  std::string name_;
  std::vector<store::ProtobufMessage> inputs_, outputs_, nodes_, metadata_;
  std::map<std::string, store::ProtobufMessage> constants_;
  std::map<std::string, Weight> weights_;
  int64_t num_values_ = 0;
};

}  // namespace stretto::interchange
