#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "families/translation/translation_display.h"
#include "report/html_report.h"
#include "report/metrics_log.h"

/// What pages of reports are made of, and what stands in them.
namespace stretto::report::test {

inline size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// The figure with a title, from <h3> on.
inline std::string figure(const std::string& page, const std::string& title) {
  const size_t begin = page.find("<h3>" + title);
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("</figure>", begin) - begin);
}

inline ReportContent content_with(int64_t updates, int64_t valid_every) {
  ReportContent content{.title = "A run", .status = "running", .max_steps = updates};
  content.display = tasks::translation_display({.label_smoothing = 0});
  for (int64_t step = 1; step <= updates; ++step) {
    const double t = static_cast<double>(step);
    MetricsEvent event{.step = step, .epoch = 1 + step / 1000, .event = "train"};
    event.loss = 2 + 7 * std::exp(-t / 500) + 0.2 * std::sin(t * 12.9898);
    event.measures = {{"nll", *event.loss - 0.3}};
    event.lr = 1e-3 / std::sqrt(t);
    event.grad_norm = 1 + 0.5 * std::sin(t * 78.233);
    event.counts = {{"tokens_per_second", 4000 + 100 * std::sin(t)}};
    event.seconds = t * 0.5;
    content.events.push_back(event);
    if (step % valid_every != 0) continue;
    MetricsEvent valid{.step = step, .epoch = event.epoch, .event = "valid"};
    valid.loss = *event.loss + 0.1;
    valid.measures = {{"nll", *event.loss - 0.2}};
    valid.scores = {{"bleu", 30 * (1 - std::exp(-t / 1000))}};
    content.events.push_back(valid);
  }
  return content;
}

}  // namespace stretto::report::test
