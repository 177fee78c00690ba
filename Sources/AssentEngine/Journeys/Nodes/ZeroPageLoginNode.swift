import AssentCore
import Foundation

/// Takes user name and password from header fields of the journey's first request, for programs that show no page.
struct ZeroPageLoginNode: RunnableNode {
    static let name = "ZeroPageLoginNode"
    let outcomes = ["true", "false"]
    private let usernameHeader: String
    private let passwordHeader: String
    private let allowsWithoutReferer: Bool
    private let referrers: [String]

    init(_ settings: NodeSettings) {
        usernameHeader = settings.string("usernameHeader", default: "X-OpenAM-Username")
        passwordHeader = settings.string("passwordHeader", default: "X-OpenAM-Password")
        allowsWithoutReferer = settings.bool("allowWithoutReferer", default: true)
        referrers = settings.strings("referrerWhiteList")
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        guard context.isFirstRequest, isRefererAllowed(context.header("Referer")),
            let username = context.header(usernameHeader).flatMap(Self.decoded),
            let password = context.header(passwordHeader).flatMap(Self.decoded), !username.isEmpty
        else { return .outcome("false") }
        context.progress.subject.username = username
        context.password = Secret(password)
        return .outcome("true")
    }

    private func isRefererAllowed(_ referer: String?) -> Bool {
        guard let referer else { return allowsWithoutReferer }
        return referrers.isEmpty || referrers.contains(referer)
    }

    /// A field's value, which may be one encoded word (RFC 2047 §2) of UTF-8 for what lies beyond ASCII.
    static func decoded(_ value: String) -> String? {
        guard value.utf8.count <= CallbackInput.textLimit * 2, let text = unwrapped(value), !text.utf8.contains(0),
            !MarksInARow.areTooMany(in: text)
        else { return nil }
        return text
    }

    private static func unwrapped(_ value: String) -> String? {
        guard value.hasPrefix("=?"), value.hasSuffix("?=") else { return value }
        let parts = value.dropFirst(2).dropLast(2).split(separator: "?", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].lowercased() == "utf-8" else { return nil }
        let bytes: [UInt8]? =
            switch parts[1].lowercased() {
            case "b": Data(base64Encoded: String(parts[2])).map { [UInt8]($0) }
            case "q": quotedPrintable(parts[2])
            default: nil
            }
        return bytes.flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func quotedPrintable(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "_"): bytes.append(0x20)
            case UInt8(ascii: "="):
                guard let value = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)), value.count == 1 else {
                    return nil
                }
                bytes += value
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
