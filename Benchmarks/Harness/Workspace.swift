import AssentCore
import Foundation

/// A directory for one run that only this user may read.
struct Workspace: Sendable {
    let path: String

    /// Makes one in `directory`. Beside the executable is a disk; a temporary directory may be memory, on which syncing
    /// a file costs nothing.
    init(in directory: String?) throws {
        let base =
            directory ?? Bundle.main.executableURL?.deletingLastPathComponent().path ?? NSTemporaryDirectory()
        path = URL(fileURLWithPath: base).appending(path: "AssentBench-" + SystemRandom().token(byteCount: 9)).path
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// A directory in it.
    func directory(_ name: String) throws -> String {
        let made = path + "/" + name
        try FileManager.default.createDirectory(
            atPath: made, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return made
    }

    /// Removes it with all that is in it.
    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }
}
