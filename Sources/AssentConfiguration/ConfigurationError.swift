/// Why the server refuses to start: where in the configuration, what is wrong, what to do.
public struct ConfigurationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file.
    public let file: String

    /// The line, from 1; `nil` when the whole file is meant.
    public let line: Int?

    /// What is wrong and what to do. Never a secret.
    public let message: String

    /// An error at a place.
    public init(file: String, line: Int?, _ message: String) {
        self.file = file
        self.line = line
        self.message = message
    }

    /// `file:line: message`, the form that editors can jump to.
    public var description: String {
        line.map { "\(file):\($0): \(message)" } ?? "\(file): \(message)"
    }
}
