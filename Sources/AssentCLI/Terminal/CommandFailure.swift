import Foundation

/// Why a command could not do its work, where neither its options nor the server are the reason: a file that cannot be
/// read, a secret that cannot be one.
struct CommandFailure: Error, CustomStringConvertible {
    /// What happened and what to do, in full sentences.
    let description: String

    let status: Outcome.Status

    init(_ description: String, status: Outcome.Status = .failed) {
        self.description = description
        self.status = status
    }

    /// A file of the user's that cannot be read, and why.
    static func unreadable(_ path: String, _ error: any Error, _ advice: String) -> CommandFailure {
        let reason =
            switch ((error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError ?? error as NSError).code {
            // Foundation's own numbers where it names no error of the system.
            case Int(ENOENT), CocoaError.Code.fileReadNoSuchFile.rawValue: "there is no such file"
            case Int(EACCES), CocoaError.Code.fileReadNoPermission.rawValue: "you may not read it"
            case Int(EISDIR): "it is a directory"
            default: "it failed"
            }
        return CommandFailure("\(path) cannot be read: \(reason). \(advice)")
    }
}
