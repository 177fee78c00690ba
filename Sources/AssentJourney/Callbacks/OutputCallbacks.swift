public import AssentCore
import Foundation

/// What a text of a step is for.
public enum TextKind: Hashable, Sendable {
    /// To inform.
    case information
    /// To warn.
    case warning
    /// Something went wrong.
    case error
    /// A script for a browser: not for people, never run by this library.
    case script
    /// Another number than AM is known to send.
    case other(Int)

    init(_ number: Int?) {
        switch number {
        case 0: self = .information
        case 1: self = .warning
        case 2: self = .error
        case 4: self = .script
        default: self = .other(number ?? -1)
        }
    }
}

/// A text to show.
public struct TextOutputCallback: JourneyCallback {
    /// `TextOutputCallback`
    public static let type = "TextOutputCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The text. Do not show it when ``kind`` is ``TextKind/script``.
    public var message: String { fields.text("message") }

    /// What the text is for.
    public var kind: TextKind { TextKind(fields.integer("messageType")) }
}

/// Says that the journey goes on elsewhere, usually by a link in an e-mail: show the text and wait for
/// ``JourneyClient/resume(_:options:session:)``. There is nothing to send back.
public struct SuspendedTextOutputCallback: JourneyCallback {
    /// `SuspendedTextOutputCallback`
    public static let type = "SuspendedTextOutputCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The text.
    public var message: String { fields.text("message") }

    /// What the text is for.
    public var kind: TextKind { TextKind(fields.integer("messageType")) }
}

/// Asks to wait and send the step again, until something has happened elsewhere.
public struct PollingWaitCallback: JourneyCallback {
    /// `PollingWaitCallback`
    public static let type = "PollingWaitCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// How long to wait, in milliseconds; 0 when the server did not say so in digits.
    public var waitTime: Int { max(0, fields.integer("waitTime") ?? 0) }

    /// A text to show meanwhile.
    public var message: String { fields.text("message") }

    /// The digits that the user types on the device, when the server sends them apart from the text.
    var number: String? {
        let digits = fields.text("number")
        return (1...8).contains(digits.utf8.count) && digits.utf8.allSatisfy(\.isASCIIDigit) ? digits : nil
    }

    /// When it is too late, if the server says so.
    var until: Date? { fields.integer("expiresAt").map { Date(timeIntervalSince1970: Double($0)) } }
}

/// Data for the app, not for the user.
public struct MetadataCallback: JourneyCallback {
    /// `MetadataCallback`
    public static let type = "MetadataCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The data; empty when the server sent something other than an object.
    public var data: JSONObject { fields.output("data")?.object ?? JSONObject() }
}
