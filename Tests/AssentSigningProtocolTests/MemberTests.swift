import AssentCore
import AssentSigningProtocol
import Testing

/// What is in no message of the vectors: bodies of requests and parts that are stored.
@Suite("Transaction signing: lists of members")
struct MemberTests {
    private static let id = String(repeating: "A", count: 22)
    private static let other = String(repeating: "A", count: 21) + "Q"
    private static let hash = String(repeating: "A", count: 43)
    private static let point = String(repeating: "AAAA", count: 16) + "AA"
    private static let code = InviteCode(bytes: Array(1...10))?.canonical.reveal() ?? ""

    /// A part and its JSON with all of its members, each with another value where types allow it.
    struct Sample: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let json: String
        let optional: Set<String>
        let read: @Sendable ([UInt8]) throws -> [UInt8]

        init<Part: MessagePart>(_ type: Part.Type, _ json: String, optional: Set<String> = []) {
            (testDescription, self.json, self.optional) = ("\(type)", json, optional)
            read = { try Part(plaintext: $0).encoded() }
        }
    }

    static let samples = [
        Sample(EmptyBody.self, "{}"),
        Sample(StartBody.self, #"{"start":"a.b.c"}"#),
        Sample(CommitBody.self, #"{"commitment":"\#(hash)","offer":"\#(hash)"}"#),
        Sample(
            CompleteBody.self, #"{"enrol":"a.b","name":"N","pushId":"p","endorsements":["c","d"]}"#,
            optional: ["name", "pushId", "endorsements"]),
        Sample(ConfirmBody.self, #"{"echo":"\#(hash)"}"#),
        Sample(EvaluateBody.self, #"{"slot":"signing","gen":7,"rid":"\#(id)","blinded":"\#(point)"}"#),
        Sample(RenewStartBody.self, #"{"code":"\#(code)"}"#, optional: ["code"]),
        Sample(
            UpdateBody.self, #"{"name":"N","pushId":"","properties":{"a":"1","b":""}}"#,
            optional: ["name", "pushId", "properties"]),
        Sample(DeleteBody.self, #"{"reason":"lost"}"#, optional: ["reason"]),
        Sample(
            UnlockBody.self,
            #"{"slot":"signing","gen":1,"rid":"\#(id)","blinded":"\#(point)","r":"\#(hash)","next":"\#(hash)","#
                + #""last":"e"}"#, optional: ["last"]),
        Sample(ConfirmEvaluationBody.self, #"{"confirm":"a","eval":"b"}"#),
        Sample(ChangeStartBody.self, #"{"change":"a","rid":"\#(id)","blinded":"\#(point)"}"#),
        Sample(ChangeCommitBody.self, #"{"change":"a"}"#),
        Sample(ListBody.self, #"{"wait":25,"seen":["\#(id)","\#(other)"]}"#, optional: ["seen"]),
        Sample(FetchBody.self, #"{"txn":"\#(id)"}"#),
        Sample(ClaimBody.self, #"{"tds":"a.b.c"}"#),
        Sample(CreateBody.self, #"{"message":"M","label":"key-1","rid":"\#(id)"}"#),
        Sample(DecideBody.self, #"{"decision":"a","possession":"b"}"#, optional: ["possession"]),
        Sample(Notice.self, #"{"id":"\#(id)","at":5,"event":"reset","did":"\#(other)","name":"Phone"}"#),
        Sample(
            EvidenceEnrolment.self, #"{"record":"a","enrol":"b","offer":"c","endorsements":["d","e"]}"#),
        Sample(
            EvidenceTransaction.self,
            #"{"txd":"a","request":"AAEC","decision":"b","possession":"c","receipt":"d","eval":"e","confirm":"f"}"#,
            optional: ["txd", "request", "possession", "eval", "confirm"]),
        Sample(
            PasswordRules.self,
            #"{"minLength":6,"maxLength":12,"minLower":1,"maxNumeric":9,"sequences":false,"common":true,"history":3,"#
                + #""minAge":1,"maxAge":90,"cache":60}"#, optional: ["minLower", "maxNumeric"]),
        Sample(AssistedPasswordLock.self, #"{"type":"counter","max":3,"cap":30,"delays":[0,60]}"#),
    ]

    @Test("A part is written as it was read, with each optional member and without it", arguments: samples)
    func roundTrip(sample: Sample) throws {
        #expect(String(decoding: try sample.read(Array(sample.json.utf8)), as: UTF8.self) == sample.json)
        let object = try #require(JSONValue.parse(Array(sample.json.utf8)).object)
        for name in object.names {
            var less = object
            less[name] = nil
            let bytes = JSONValue.object(less).serializedBytes()
            if sample.optional.contains(name) {
                #expect(try sample.read(bytes) == bytes, "without \(name)")
            } else {
                let error = #expect(throws: SigningProtocolError(.missingMember, ""), "without \(name)") {
                    try sample.read(bytes)
                }
                #expect(error?.member == name)
            }
            for value: JSONValue in [-1, .array([[:]]), ["x": nil]] {
                var wrong = object
                wrong[name] = value
                #expect(throws: SigningProtocolError.self, "\(name): \(value.serialized())") {
                    try sample.read(JSONValue.object(wrong).serializedBytes())
                }
            }
        }
        let more = JSONValue.object(JSONObject(object.members + [.init(name: "extra", value: 1)])).serializedBytes()
        #expect(throws: SigningProtocolError(.unknownMember, "")) { try sample.read(more) }
    }

    @Test(
        "An error names the member by its path",
        arguments: [
            (#"{"keys":[{"label":"A","usage":"sign"}]}"#, "keys[0].label"),
            (#"{"keys":[{"label":"a","usage":"sign"},{"label":"b","usage":"x"}]}"#, "keys[1].usage"),
            (#"{"keys":[{"label":"a","usage":"sign"},{"label":"b"}]}"#, "keys[1].usage"),
            (#"{"keys":[{"label":"a","usage":"sign","more":1}]}"#, "keys[0]"),
            (#"{"keys":[7]}"#, "keys[0]"), (#"{"keys":[]}"#, "keys"),
            (#"{"keys":[{"label":"a","usage":"otp"}]}"#, "keys[0].usage"),
        ])
    func path(json: String, member: String) throws {
        let error = #expect(throws: SigningProtocolError.self) { try Outer(plaintext: Array(json.utf8)) }
        #expect(error?.member == member)
    }

    private struct Outer: ShapedPart {
        let keys: [Inner]

        static let shape = MessageShape<Self>(Self.init) { Member("keys", \.keys, .objects(1...2)) }
    }

    private struct Inner: ShapedPart {
        let label: String
        let usage: SigningKeyUsage

        static let shape = MessageShape<Self>(Self.init) {
            Member("label", \.label, .label)
            Member("usage", \.usage)
        }

        func check(in reader: MemberReader) throws(SigningProtocolError) {
            guard usage != .otp else {
                throw SigningProtocolError(.invalidMember, "no", member: reader.path("usage"))
            }
        }
    }
}
