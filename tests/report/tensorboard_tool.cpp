// For check_with_tensorboard.py: event files with known points, as a run that was stopped and
// resumed leaves them.
//   tensorboard_tool DIRECTORY   empties it and writes two sessions
#include <exception>
#include <filesystem>
#include <iostream>

#include "report/tensorboard.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tensorboard_tool DIRECTORY\n";
    return 2;
  }
  try {
    std::filesystem::remove_all(argv[1]);
    {
      stretto::report::TensorBoardWriter killed(argv[1], 0);
      killed.text("config", 0, "# The **configuration**\n");
      // Steps 3 and 4 are written anew by the next session and must not be shown twice.
      for (int step = 1; step <= 4; ++step) killed.scalar("train/loss", step, 10.0 - step);
      killed.scalar("valid/loss", 2, 0.1);
    }
    stretto::report::TensorBoardWriter resumed(argv[1], 2);
    for (int step = 3; step <= 5; ++step) resumed.scalar("train/loss", step, 1.0 / step);
    resumed.scalar("valid/loss", 1'000'000'000'000, -1e-30);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 74;
  }
  return 0;
}
