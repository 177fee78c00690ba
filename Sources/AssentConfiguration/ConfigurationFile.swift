package import AssentCore
import Foundation
import Yams

/// A file of settings in YAML.
package enum ConfigurationFile {
    /// The most bytes that a file may have.
    package static let byteLimit = 1 << 20

    /// The text of a file.
    ///
    /// - Throws: ``ConfigurationError`` when it cannot be read, is too large, or is not UTF-8.
    package static func text(of file: String) throws -> String {
        let data: Data
        do {
            data = try Data(contentsOf: URL(fileURLWithPath: file))
        } catch {
            throw ConfigurationError(file: file, line: nil, "cannot be read: \(whyUnreadable(file))")
        }
        guard data.count <= byteLimit, let text = String(validating: data, as: UTF8.self) else {
            throw ConfigurationError(file: file, line: nil, "must be UTF-8 of at most 1 MiB")
        }
        return text
    }

    /// The line of a key, for example `tls.certificate`; `nil` where the file does not say.
    package static func line(of key: String, in file: String) -> Int? {
        guard let text = try? text(of: file), let document = try? YAMLDocument(text, file: file) else { return nil }
        return document.line(of: key)
    }

    /// Why a file cannot be read as text, for people: Foundation's own words leave the cause out.
    package static func whyUnreadable(_ file: String) -> String {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor < 0 else {
            defer { close(descriptor) }
            var status = stat()
            let isDirectory = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
            return isDirectory ? "it is a directory" : "it is not text in UTF-8"
        }
        switch errno {
        case ENOENT, ENOTDIR: return "there is no such file"
        case EACCES: return "you may not read it"
        default: return String(cString: strerror(errno))
        }
    }

    /// Reads the settings in `text`, which is the content of `file`. `body` makes a value of them.
    ///
    /// - Throws: ``ConfigurationError`` with the line of the first thing that is wrong: what the reader noted, keys
    ///   that `body` did not ask for, and the ``SettingsIssue`` that it throws, unless a misspelled key explains it.
    ///   Other errors of `body` are thrown as they are.
    package static func read<Value>(
        _ text: String, file: String, _ body: (SettingsReader<Void>) throws -> Value
    ) throws -> Value {
        let document = try YAMLDocument(text, file: file)
        let settings = SettingsReader(document.value)
        do {
            let value = try body(settings)
            settings.finish()
            if let issue = settings.issues.first { throw issue }
            return value
        } catch {
            // What was noted first is the cause: a substitute for it may be all that the body complains about.
            let thrown = (error as? SettingsIssue).map { settings.misspelling ?? $0 }
            guard let issue = settings.issues.first ?? thrown else { throw error }
            throw ConfigurationError(file: file, line: document.line(of: issue.path), issue.description)
        }
    }
}
