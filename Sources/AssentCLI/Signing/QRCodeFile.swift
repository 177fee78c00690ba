import Foundation

/// A file with the text of a QR code.
enum QRCodeFile {
    static func text(_ path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        } catch {
            throw CommandFailure.unreadable(path, error, "Name the file with the text of the QR code.")
        }
    }
}
