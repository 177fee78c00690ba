import Assent
import Foundation

/// The file that `--download` names.
struct DownloadPlace {
    let path: String

    init(_ path: String) { self.path = path }

    /// Refuses a place where nothing could be written, before anything is sent.
    func check() throws {
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            throw CommandFailure("\(path) is a directory. Nothing was sent.")
        }
        let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
        guard access(directory, W_OK | X_OK) == 0 else {
            throw CommandFailure(
                "\(path) cannot be written: \(String(cString: strerror(errno))). Nothing was sent.")
        }
    }
}
