import AssentSigningProtocol
import Testing

@testable import AssentEngine

@Suite("Settings and templates of transaction signing that are faults")
struct SigningSettingsTests {
    private static func settings() -> SigningSettings {
        SigningSettings(
            issuer: SigningIssuer(name: "https://bank.example/signing", realm: "/"), name: "Bank",
            templates: ["payment": SigningTemplate(title: LocalizedText("Confirm"))])
    }

    private static func signing(_ count: Int) -> [OfferedKey] {
        (0..<count).map { OfferedKey(usage: .sign, label: "sign-\($0)", policy: SigningSettings.policyID) }
    }

    private static func authentication(_ count: Int) -> [OfferedKey] {
        (0..<count).map { OfferedKey(usage: .auth, label: "auth-\($0)", policy: SigningSettings.policyID) }
    }

    @Test("Each setting has its bounds, and what lies on them is good")
    func settings() {
        func isGood(_ change: (inout SigningSettings) -> Void) -> Bool {
            var settings = Self.settings()
            change(&settings)
            return settings.faults().isEmpty
        }
        #expect(isGood { _ in })
        #expect(isGood { $0.name = String(repeating: "x", count: 64) })
        for name in ["", String(repeating: "x", count: 65), "a\u{202E}b"] { #expect(!isGood { $0.name = name }) }
        for name in ["http://bank.example/signing", "https://bank.example/signing?a=b", "bank"] {
            #expect(!isGood { $0.issuer = SigningIssuer(name: name, realm: "/") }, "\(name)")
        }
        for count in [1, 20] { #expect(isGood { $0.limits.containers = count }) }
        for count in [0, 21] { #expect(!isGood { $0.limits.containers = count }) }
        for days in [1, 3650] as [Int64] { #expect(isGood { $0.keyLifetime = days * 86400 }) }
        for seconds in [86399, 3650 * 86400 + 1] as [Int64] { #expect(!isGood { $0.keyLifetime = seconds }) }
        #expect(isGood { $0.keys = Self.signing(4) + Self.authentication(2) })
        #expect(!isGood { $0.keys = Self.signing(5) })
        #expect(!isGood { $0.keys = Self.signing(1) + Self.authentication(3) })
        #expect(!isGood { $0.keys = Self.signing(1) + Self.signing(1) })
        #expect(!isGood { $0.keys.append(OfferedKey(usage: .otp, label: "otp", policy: SigningSettings.policyID)) })
        #expect(!isGood { $0.keys[0] = OfferedKey(usage: .sign, label: "device", policy: SigningSettings.policyID) })
        #expect(!isGood { $0.keys[0] = OfferedKey(usage: .sign, label: "payments", policy: "unknown") })
        #expect(!isGood { $0.templates["payment"]?.lifetime = 9 })
    }

    @Test(
        "A code key has 6 to 10 digits and steps of 1 to 300 seconds, and a device has at most four, and 8 keys in all")
    func codes() {
        func isGood(keys: [OfferedKey]? = nil, _ codes: [OneTimeKeySettings]) -> Bool {
            var settings = Self.settings()
            settings.oneTimeKeys = codes
            if let keys { settings.keys = keys }
            return settings.faults().isEmpty
        }
        func key(_ number: Int, kind: OneTimeKeySettings.Kind = .counter, digits: Int = 6) -> OneTimeKeySettings {
            var key = OneTimeKeySettings(label: "code-\(number)", kind: kind)
            key.digits = digits
            return key
        }
        for digits in [6, 10] { #expect(isGood([key(0, digits: digits)])) }
        for digits in [5, 11] { #expect(!isGood([key(0, digits: digits)])) }
        for period in [1, 300] { #expect(isGood([key(0, kind: .time(period: period))])) }
        for period in [0, 301] { #expect(!isGood([key(0, kind: .time(period: period))])) }
        #expect(isGood((0..<4).map { key($0) }))
        #expect(!isGood((0..<5).map { key($0) }))
        #expect(isGood(keys: Self.signing(3), (0..<3).map { key($0) }))
        #expect(!isGood(keys: Self.signing(4), (0..<3).map { key($0) }))
    }

    @Test("A template asks what a user can approve and deny, with keys that devices have, in time and in few words")
    func templates() {
        func faults(_ change: (inout SigningTemplate) -> Void) -> Int {
            var template = SigningTemplate(title: LocalizedText("Confirm"))
            change(&template)
            return template.faults(keys: SigningSettings.standardKeys).count
        }
        typealias Status = SigningTemplate.Status
        func status(_ name: String, _ effect: DecisionEffect, keys: [String] = []) -> Status {
            Status(name: name, label: LocalizedText("To \(name)"), effect: effect, keys: keys)
        }
        let (accept, deny) = (status("accept", .approve), status("deny", .deny))
        func field(_ id: String) -> SigningTemplate.Field {
            SigningTemplate.Field(id: id, label: LocalizedText("Field"), type: .text, pointer: "/\(id)")
        }
        #expect(faults { _ in } == 0)
        for seconds in [10, 3600] as [Int64] { #expect(faults { $0.lifetime = seconds } == 0) }
        for seconds in [9, 3601] as [Int64] { #expect(faults { $0.lifetime = seconds } == 1) }
        #expect(faults { $0.kind = .record } == 1)
        #expect(faults { $0.fields = (0..<16).map { field("f-\($0)") } } == 0)
        #expect(faults { $0.fields = (0..<17).map { field("f-\($0)") } } == 1)
        #expect(faults { $0.fields = [field("to"), field("to")] } == 1)
        #expect(faults { $0.fields = [field("To")] } == 1)
        #expect(faults { $0.notShown = ["type"] } == 1)
        #expect(faults { $0.notShown = Array(repeating: "/a", count: TransactionDisplay.maximumLeftOut + 1) } == 1)
        #expect(faults { $0.text = LocalizedText("Pay {to}") } == 1)
        #expect(faults { $0.warning = LocalizedText("Pay", byLanguage: ["de": "Zahle {to}"]) } == 1)
        #expect(
            faults {
                $0.text = LocalizedText("Pay {to}")
                $0.fields = [field("to")]
            } == 0)
        for statuses in [
            [accept, status("again", .approve)], [deny, status("report", .report)],
            [accept, deny, status("deny", .deny)],
            [accept, deny, status("one", .cancel), status("two", .cancel)],
            [accept, deny] + (0..<7).map { status("s-\($0)", .report) },
            [status("accept", .approve, keys: ["sign-in"]), deny],
            [status("accept", .approve, keys: ["payments", "other"]), deny],
        ] as [[Status]] {
            #expect(faults { $0.statuses = statuses } > 0, "\(statuses.map(\.name))")
        }
        #expect(faults { $0.statuses = [accept, deny] + (0..<6).map { status("s-\($0)", .report) } } == 0)
        #expect(faults { $0.statuses = [status("accept", .approve, keys: ["payments"]), deny] } == 0)
        #expect(faults { $0.statuses = [accept, deny, status("cancel", .cancel)] } == 0)
        let alike = Status(
            name: "deny", label: LocalizedText("No", byLanguage: ["de": "Weiter"]), effect: .deny)
        let other = Status(
            name: "accept", label: LocalizedText("Yes", byLanguage: ["de": "weiter"]), effect: .approve)
        #expect(faults { $0.statuses = [other, alike] } == 1)
    }
}
