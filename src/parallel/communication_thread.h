#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace stretto::parallel {

/// A thread that runs jobs one after the other in the order in which they came, so that collectives
/// go on while other work is done. It sleeps while there is none, and starts with the first job.
class CommunicationThread {
 public:
  using Job = std::function<void()>;

  CommunicationThread() = default;
  /// Waits for the job that runs; jobs after it are dropped.
  ~CommunicationThread();
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;

  /// When it throws, the job was not taken. After a job failed, others are dropped until wait() has
  /// told so.
  void submit(Job job);
  /// Until all jobs are done; rethrows the first failure.
  void wait();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable job_came_, all_done_;
  std::deque<Job> jobs_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool leave_ = false;
  std::thread thread_;
};

}  // namespace stretto::parallel
