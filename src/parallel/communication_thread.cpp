#include "parallel/communication_thread.h"

#include <omp.h>

#include <utility>

namespace stretto::parallel {

CommunicationThread::~CommunicationThread() {
  {
    const std::lock_guard lock(mutex_);
    leave_ = true;
    jobs_.clear();
  }
  job_came_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CommunicationThread::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    jobs_.push_back(std::move(job));
  }
  job_came_.notify_one();
}

void CommunicationThread::wait() {
  std::unique_lock lock(mutex_);
  all_done_.wait(lock, [this] { return jobs_.empty() && !busy_; });
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) {
    std::rethrow_exception(failure);
  }
}

void CommunicationThread::run() {
  omp_set_num_threads(1);  // of this thread's loops: the other cores compute
  std::unique_lock lock(mutex_);
  for (;;) {
    job_came_.wait(lock, [this] { return leave_ || !jobs_.empty(); });
    if (leave_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job();
    } catch (...) {
      failure = std::current_exception();
    }
    job = nullptr;  // what it holds goes before anybody hears that it is done
    lock.lock();
    busy_ = false;
    if (failure) {
      failure_ = failure;
      jobs_.clear();
    }
    if (jobs_.empty()) all_done_.notify_all();
  }
}

}  // namespace stretto::parallel
