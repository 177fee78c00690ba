import AssentCore
import Foundation

/// Where a benchmark ran: absolute figures mean nothing without it.
struct Machine: Sendable {
    /// The processor's name, as the system has it.
    let processor: String

    let cores: Int
    let system: String

    /// This one.
    init() {
        let information = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
        let line = information.split(separator: "\n").first { $0.hasPrefix("model name") }
        let name = line?.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
        processor = name ?? "an unnamed processor"
        cores = ProcessInfo.processInfo.activeProcessorCount
        system = ProcessInfo.processInfo.operatingSystemVersionString
    }

    var text: String { "\(processor), \(cores) cores, \(system)" }

    var json: JSONValue {
        ["processor": .string(processor), "cores": .integer(Int64(cores)), "system": .string(system)]
    }
}

/// What the processors have worked for this process, in user and in kernel mode, in all its threads.
enum ProcessTime {
    /// In seconds.
    static var now: Double {
        var usage = rusage()
        #if canImport(Glibc)
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        #else
        getrusage(RUSAGE_SELF, &usage)
        #endif
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }
}
