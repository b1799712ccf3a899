#pragma once
#include <ostream>

#include "core/json.h"
#include "diagnose/diagnosis.h"
#include "diagnose/measured_parts.h"
#include "session/session.h"

namespace krigtune::cli {

/// What `krigtune diagnose` says of a configuration. `subject`: "the baseline of job.json".
void print_diagnosis(std::ostream& out, const session::Session& session, const diagnose::Diagnosis& diagnosis,
                     const std::string& subject);
/// The same as fields of its document.
Json to_json(const session::Session& session, const diagnose::Diagnosis& diagnosis);

/// Of something that was measured and that no model knows.
void print_parts(std::ostream& out, const diagnose::MeasuredParts& measured, const std::string& subject);
Json to_json(const diagnose::MeasuredParts& measured);

}  // namespace krigtune::cli
