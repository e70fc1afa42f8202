#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace stretto::report {

/// Writes a TensorBoard event file (TFRecord framing with masked CRC32C, Event protobuf by hand).
class TensorBoardWriter {
 public:
  /// Creates `directory/events.out.tfevents.<seconds>.<host>.<pid>` (and the folder). A
  /// session-start record tells TensorBoard that steps from `resume_step` + 1 on are written anew,
  /// so that points of a session that was killed do not stay on its curves. Throws Error(kIo).
  TensorBoardWriter(const std::filesystem::path& directory, int64_t resume_step);
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;
  TensorBoardWriter& operator=(const TensorBoardWriter&) = delete;

  /// Records are written whole, at the latest two seconds after the previous ones when another one
  /// comes, at `flush()` and at the end. A record that cannot be written is counted and warned
  /// about; it never stops a training.
  void scalar(const std::string& tag, int64_t step, double value);
  /// Shown, as Markdown, under TensorBoard's TEXT tab.
  void text(const std::string& tag, int64_t step, const std::string& markdown);
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stretto::report
