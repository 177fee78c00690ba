import AssentCore
import Foundation
import Testing

/// Recorded payloads, which are read only where the environment says where they are.
enum Fixtures {
    static let directory = ProcessInfo.processInfo.environment["ASSENT_FIXTURES"]

    static func json(_ path: String) throws -> JSONValue {
        let directory = try #require(directory)
        let data = try Data(contentsOf: URL(fileURLWithPath: directory).appendingPathComponent(path))
        return try JSONValue.parse(Array(data))
    }

    static var files: [String] {
        guard let directory, let all = FileManager.default.enumerator(atPath: directory) else { return [] }
        return all.compactMap { $0 as? String }.filter { $0.hasSuffix(".json") }.sorted()
    }
}
