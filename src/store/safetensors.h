#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace stretto::store {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };
int64_t size_of(DType dtype);
std::string_view name_of(DType dtype);  ///< "F32", "I64", … as safetensors spells it

/// A tensor as bytes, little-endian and contiguous; the bytes are not owned.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::string_view bytes;

  int64_t num_elements() const;
};

/// Writes a new safetensors file: tensors by falling element size (so that each is aligned), else
/// in the given order; data starts at a multiple of 64 bytes; `metadata` as `__metadata__`.
/// Streams; fsyncs before it returns. Failpoints `checkpoint.open`, `.write`, `.fsync`, `.close`.
/// Throws Error(kIo), also when `path` exists; std::invalid_argument for two tensors of one name, a
/// name that is not UTF-8, or bytes that do not fit the shape.
void write_safetensors(const std::filesystem::path& path, const std::vector<TensorView>& tensors,
                       const std::map<std::string, std::string>& metadata);

/// The same file as chunks whose concatenation it is: length and header, then the data of each
/// tensor. The first chunk lives in `header`.
std::vector<std::string_view> safetensors_chunks(const std::vector<TensorView>& tensors,
                                                 const std::map<std::string, std::string>& metadata,
                                                 std::string& header);

/// A tensor whose bytes are made when their turn comes to be written.
struct StreamedTensor {
  TensorView tensor;  ///< without bytes where `make` gives them
  std::function<std::string()> make =
      {};  ///< as many as dtype and shape say; empty = `tensor` has them
};

/// The same file of such tensors, of which the bytes of one are in memory at a time. Throws as
/// write_safetensors() does, and whatever `make` does.
void stream_safetensors(const std::filesystem::path& path,
                        const std::vector<StreamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata);

/// The size of such a file, by names, types and shapes alone: bytes may be missing. Throws
/// std::invalid_argument as write_safetensors() does.
uint64_t safetensors_file_bytes(const std::vector<TensorView>& tensors,
                                const std::map<std::string, std::string>& metadata);

/// Bytes before the data: the 8 of the length and the header. Throws as parse_safetensors does.
size_t safetensors_header_bytes(std::string_view bytes, std::string_view where);

/// A memory-mapped safetensors file, checked as the reference implementation does (header size at
/// most 100 MB, known dtypes, no overlap, no holes, shape products without overflow), and more
/// strictly: no name twice, at most 64 levels of JSON.
class SafetensorsFile {
 public:
  /// Throws Error(kUsage) when absent, Error(kBadData) naming the tensor or offset when malformed.
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// Tensors whose bytes lie elsewhere, as if they were a file; header() is empty.
  explicit SafetensorsFile(std::vector<TensorView> tensors,
                           std::map<std::string, std::string> metadata = {})
      : tensors_(std::move(tensors)), metadata_(std::move(metadata)) {}

  const std::vector<TensorView>& tensors() const { return tensors_; }  ///< views into the map
  const TensorView* find(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  std::string_view header() const;  ///< the bytes before the data, as they stand in the file
  /// Gives back the memory that reading one of tensors() took. Its bytes can be read again.
  void forget(const TensorView& tensor) const;

 private:
  MappedFile file_;
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// The parser alone, for fuzzing and for bytes from elsewhere.
std::vector<TensorView> parse_safetensors(std::string_view bytes, std::string_view where,
                                          std::map<std::string, std::string>* metadata);

}  // namespace stretto::store
