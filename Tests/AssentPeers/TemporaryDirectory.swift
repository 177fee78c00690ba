import AssentCore
package import Foundation

/// A directory of the real file system, for this user alone, that is gone after the test.
package final class TemporaryDirectory: Sendable {
    package let url: URL

    package init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "assent-test-\(SystemRandom().uuid())")
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    package func path(_ name: String) -> String { url.appending(path: name).path(percentEncoded: false) }

    /// Everything that lies in files below.
    package func bytes() -> [UInt8] {
        let paths = FileManager.default.subpaths(atPath: url.path(percentEncoded: false)) ?? []
        return paths.flatMap { (try? Data(contentsOf: url.appending(path: $0))).map(Array.init) ?? [] }
    }
}
