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

/// Expects an error with this code and these words: errors are equal when their codes are.
func expectExactly<Expected: AssentError, Result>(
    _ expected: Expected, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Result
) {
    let error = #expect(throws: Expected.self, sourceLocation: sourceLocation) { try body() }
    #expect(error?.description == expected.description, sourceLocation: sourceLocation)
}
