import AssentCore
import AssentSigningProtocol
import Testing

@Suite("Transaction signing: bounds of what protects keys")
struct ProtectionBoundTests {
    @Test("A guess costs as much as the protocol allows, no less and no more")
    func costs() {
        for (logN, r, p, isFine) in [
            (14, 8, 1, true), (18, 16, 4, true), (13, 8, 1, false), (19, 8, 1, false), (14, 7, 1, false),
            (14, 17, 1, false), (14, 8, 0, false), (14, 8, 5, false),
        ] {
            let text = "$scrypt$ln=\(logN),r=\(r),p=\(p)"
            #expect((PasswordCost(logN: logN, r: r, p: p) != nil) == isFine, "\(text)")
            #expect(PasswordCost(text)?.text == (isFine ? text : nil))
        }
        for text in ["$scrypt$ln=14,r=8,p=1 ", "$scrypt$ln=+14,r=8,p=1", "$scrypt$r=8,ln=14,p=1", ""] {
            #expect(PasswordCost(text) == nil, "\(text)")
        }
    }

    private func rules(_ name: String, _ value: Int, with others: [String: Int] = [:]) throws -> PasswordRules {
        var object: JSONObject = [
            "minLength": 4, "maxLength": 128, "sequences": false, "common": false, "history": 0, "minAge": 0,
            "maxAge": 0, "cache": 0,
        ]
        for (name, value) in others { object[name] = .integer(value) }
        object[name] = .integer(value)
        return try PasswordRules(plaintext: JSONValue.object(object).serializedBytes())
    }

    @Test("Rules about passwords have bounds on both sides")
    func rules() throws {
        let bounds: [(String, ClosedRange<Int>)] = [
            ("minLength", 4...64), ("maxLength", 4...128), ("minUpper", 0...128), ("maxNonAlpha", 0...128),
            ("history", 0...24), ("minAge", 0...3650), ("maxAge", 0...3650), ("cache", 0...3600),
        ]
        for (name, range) in bounds {
            for value in [range.lowerBound, range.upperBound] {
                #expect(throws: Never.self, "\(name): \(value)") { try rules(name, value) }
            }
            // What is negative is not a number of this protocol.
            for value in [range.lowerBound - 1, range.upperBound + 1] where value >= 0 {
                #expect(throws: SigningProtocolError(.invalidMember, ""), "\(name): \(value)") {
                    try rules(name, value)
                }
            }
        }
        #expect(throws: Never.self) { try rules("minLength", 8, with: ["maxLength": 8]) }
        let error = #expect(throws: SigningProtocolError.self) { try rules("minLength", 9, with: ["maxLength": 8]) }
        #expect(error?.member == "maxLength")
    }

    @Test(
        "Locks of both kinds have bounds, and no other form",
        arguments: [
            (#"{"type":"none"}"#, true, false), (#"{"type":"other"}"#, false, false),
            (#"{"type":"none","max":1}"#, false, false), (#"{"type":"delay","delay":1,"counter":1}"#, true, false),
            (#"{"type":"delay","delay":3600,"counter":16}"#, true, false),
            (#"{"type":"delay","delay":0,"counter":1}"#, false, false),
            (#"{"type":"delay","delay":3601,"counter":1}"#, false, false),
            (#"{"type":"delay","delay":1,"counter":0}"#, false, false),
            (#"{"type":"delay","delay":1,"counter":17}"#, false, false), (#"{"type":"counter","max":1}"#, true, false),
            (#"{"type":"counter","max":10}"#, true, false), (#"{"type":"counter","max":0}"#, false, false),
            (#"{"type":"counter","max":11}"#, false, false),
            (#"{"type":"counter","max":1,"cap":1,"delays":[]}"#, false, true),
            (#"{"type":"counter","max":10,"cap":100,"delays":[0,86400]}"#, false, true),
            (#"{"type":"counter","max":0,"cap":1,"delays":[]}"#, false, false),
            (#"{"type":"counter","max":11,"cap":20,"delays":[]}"#, false, false),
            (#"{"type":"counter","max":3,"cap":2,"delays":[]}"#, false, false),
            (#"{"type":"counter","max":3,"cap":101,"delays":[]}"#, false, false),
            (#"{"type":"counter","max":3,"cap":9,"delays":[86401]}"#, false, false),
            (#"{"type":"counter","max":3,"cap":9,"delays":["1"]}"#, false, false),
            (#"{"type":"counter","max":3,"cap":9,"delays":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#, false, true),
            (#"{"type":"counter","max":3,"cap":9,"delays":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"#, false, false),
        ])
    func locks(json: String, isLocal: Bool, isAssisted: Bool) {
        let bytes = Array(json.utf8)
        let (local, assisted) = (try? LocalPasswordLock(plaintext: bytes), try? AssistedPasswordLock(plaintext: bytes))
        #expect((local != nil) == isLocal)
        #expect((assisted != nil) == isAssisted)
    }

    @Test("An offer with a policy or a slot twice is refused: a device would not know which one was meant")
    func twice() throws {
        let good = try CompactParts(Vectors.load().compact("offer")).object(1)
        for name in ["policies", "slots"] {
            var object = good
            let list = try #require(object[name]?.array)
            object[name] = .array(list + [try #require(list.last)])
            let offer = try Offer(plaintext: JSONValue.object(object).serializedBytes())
            let error = #expect(throws: SigningProtocolError(.offerRefused, "")) { try offer.check() }
            #expect(error?.member == name)
        }
    }

    @Test("Without digits only keys that approve nothing are enrolled, or those for which old keys vouch")
    func digits() throws {
        var object = try CompactParts(Vectors.load().compact("offer")).object(1)
        object["commit"] = "exchange"
        let approving = try Offer(plaintext: JSONValue.object(object).serializedBytes())
        #expect(throws: SigningProtocolError(.offerRefused, "")) { try approving.check() }
        #expect(throws: Never.self) { try approving.check(isRenewal: true) }
        object["slots"] = []
        object["keys"] = .array(Array(try #require(object["keys"]?.array).prefix(2)))
        let reading = try Offer(plaintext: JSONValue.object(object).serializedBytes())
        #expect(throws: Never.self) { try reading.check() }
    }
}
