public import Foundation

/// An error of Assent: a stable code to decide by, a sentence for people, and what they can do.
///
/// Every error type of the SDK conforms, so an app that only wants to show a failure or try again needs one `catch`:
///
/// ```swift
/// do {
///     try await pay()
/// } catch let error as any AssentError {
///     await screen.show(error.detail, error.suggestion)
///     if error.isTransient { await screen.offerRetry() }
/// }
/// ```
///
/// Two errors of one type are equal when their codes are; everything else explains. No text in an error holds a secret.
/// Some texts quote a server: escape them before they reach a terminal (``DisplayText/escapedForTerminal(_:)``).
public protocol AssentError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
    /// The codes of this type.
    associatedtype Code: ErrorCode

    /// What went wrong, as a stable name.
    var code: Code { get }

    /// What happened, in full sentences for people; never a secret.
    var detail: String { get }

    /// What to do about it, in full sentences; `nil` when there is nothing to add.
    var suggestion: String? { get }

    /// Whether the same call may succeed later without anybody changing anything: the network, a server that is
    /// overloaded, a store that is busy. `false` when the first try may have had an effect.
    var isTransient: Bool { get }

    /// What ``description`` adds in parentheses, for example an HTTP status; none by default.
    var notes: [String] { get }
}

extension AssentError {
    /// There is nothing to add.
    public var suggestion: String? { nil }

    /// Trying again changes nothing.
    public var isTransient: Bool { false }

    /// There are none.
    public var notes: [String] { [] }

    /// Code, detail, notes and suggestion, in this order.
    public var description: String {
        var text = "\(code)"
        if !detail.isEmpty { text += ": \(detail)" }
        for note in notes { text += " (\(note))" }
        if let suggestion { text += " \(suggestion)" }
        return text
    }

    /// The detail, for `localizedDescription`.
    public var errorDescription: String? { detail.isEmpty ? "\(code)" : detail }

    /// The suggestion, for Foundation's error presentation.
    public var recoverySuggestion: String? { suggestion }

    /// There is none; the detail says everything.
    public var failureReason: String? { nil }

    /// There is none.
    public var helpAnchor: String? { nil }

    /// Errors are equal when their codes are.
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension Error {
    /// What happened, the notes and what to do, without the code: for a text that quotes this error for people. What is
    /// no ``AssentError`` describes itself.
    package var explanation: String {
        guard let error = self as? any AssentError else { return "\(self)" }
        let parts = [error.detail] + error.notes.map { "(\($0))" } + [error.suggestion].compactMap(\.self)
        return parts.joined(separator: " ")
    }

    /// The same, but of an error that is not an ``AssentError`` only the type: what such an error says of itself is not
    /// written for people, and may hold what they must not see.
    package var explanationOrType: String { self is any AssentError ? explanation : "\(type(of: self))." }
}

/// A stable name of a kind of failure. Each error type has codes of its own, and later versions may add more: a
/// `switch` over them needs a `default`.
public protocol ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible where RawValue == String {
    /// A code by its name. It need not be one that this version knows.
    init(rawValue: String)
}

extension ErrorCode {
    /// A code by its name, for the declarations of the known ones.
    package init(_ name: String) { self.init(rawValue: name) }

    /// The name.
    public var description: String { rawValue }
}
