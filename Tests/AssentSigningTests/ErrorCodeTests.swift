import Foundation
import Testing

@testable import AssentSigning

@Suite("Signing device: HID's numbers")
struct ErrorCodeTests {
    /// The numbers of HID's own page "Troubleshooting", by the code that means the same here.
    private static let published = [
        "internal": 0, "notImplemented": 1, "unsupportedOperation": 2, "invalidArgument": 3, "keyGeneration": 4,
        "protectionPolicy": 5, "secureData": 6, "version_unsupported": 7, "invalidContainer": 8,
        "inexplicitContainer": 9, "wrongPassword": 100, "invalidPassword": 101, "key_expired": 102,
        "password_expired": 103, "password_too_young": 104, "passwordRequired": 105, "credentialsLost": 106,
        "unsupportedDevice": 200,
    ]

    /// The numbers of the section "Errors" of the protocol's page: of its table, and of the codes of the SDK alone.
    private static func documented() throws -> [String: Int] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/transaction-signing.md"), encoding: .utf8)
        let rest = try #require(page.components(separatedBy: "\n## Errors\n").last)
        let section = try #require(rest.components(separatedBy: "\n## ").first)
        var numbers: [String: Int] = [:]
        for line in section.components(separatedBy: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|")
            try #require(cells.count == 4, "\(line)")
            let codes = cells[0].matches(of: /`(\w+)`/).map { String($0.1) }
            let given = cells[3].split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            try #require(given.count == 1 || given.count == codes.count, "\(line)")
            for (index, code) in codes.enumerated() { numbers[code] = Int(given[given.count == 1 ? 0 : index]) }
        }
        let alone = try #require(section.components(separatedBy: "Codes of the SDK alone:").last)
        for match in alone.matches(of: /`(\w+)` (\d+)/) { numbers[String(match.1)] = Int(match.2) }
        return numbers
    }

    @Test("Each code has the number that the protocol's page and HID's own list give, and no other code has one")
    func numbers() throws {
        let documented = try Self.documented()
        let pairs = SigningError.Code.meanings.keys.compactMap { code in code.hid.map { (code.rawValue, $0) } }
        #expect(Dictionary(uniqueKeysWithValues: pairs) == documented)
        #expect(Set(documented.values) == Set(Self.published.values))
        for (code, number) in Self.published { #expect(SigningError.Code(rawValue: code).hid == number, "\(code)") }
    }
}
