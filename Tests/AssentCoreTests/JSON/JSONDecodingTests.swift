@testable import AssentCore
import Foundation
import HTTPTypes
import Testing

@Suite("Reading JSON as a type")
struct JSONDecodingTests {
    private struct Claims: Decodable, Equatable {
        enum Level: String, Decodable { case low, high }
        struct Address: Decodable, Equatable { let city: String }
        let id: UInt64
        let amount: Decimal
        let at: Date
        let level: Level
        let address: Address?
        let tags: [String]
        let page: URL?
    }

    private indirect enum Nested: Decodable {
        case end
        case inner(Nested)
        init(from decoder: any Decoder) throws {
            var container = try decoder.unkeyedContainer()
            self = container.isAtEnd ? .end : .inner(try container.decode(Nested.self))
        }
    }

    private func parse(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

    private func failure(_ text: String, _ decode: (JSONValue) throws -> some Any) throws -> JSONDecodingError? {
        let value = try parse(text)
        return #expect(throws: JSONDecodingError.self) { try decode(value) }
    }

    @Test("Every member arrives as it was written, absent and null ones as nil, unknown ones not at all")
    func whole() throws {
        let json = try parse(
            #"{"id":18446744073709551615,"amount":12345678901234567890.0123456789,"at":1767225600.5,"level":"high","#
                + #""address":null,"tags":["a","b"],"page":"https://a.example/x","more":{"x":[1]}}"#)
        let claims = try json.decode(Claims.self)
        #expect(claims.id == .max && claims.tags == ["a", "b"] && claims.level == .high && claims.address == nil)
        #expect(claims.amount == Decimal(string: "12345678901234567890.0123456789"))
        #expect(claims.at == Date(timeIntervalSince1970: 1_767_225_600.5))
        #expect(claims.page?.host() == "a.example")
    }

    @Test("An object of many names is read as a dictionary in one walk, and means the same as one of few")
    func manyMembers() throws {
        let numbers = (0..<50_000).map { JSONObject.Member(name: "m\($0)", value: .integer($0)) }
        let read = try JSONObject(numbers).decode([String: Int].self)
        #expect(read.count == numbers.count && read["m49999"] == 49_999)
        struct Account: Decodable, Equatable { let id: Int, note: String? }
        for others in [0, 100] {
            var members = Array(numbers.prefix(others))
            #expect(throws: JSONDecodingError.self) { try JSONObject(members).decode(Account.self) }
            members += [JSONObject.Member(name: "id", value: 1), JSONObject.Member(name: "id", value: 2)]
            // The last one of a name, as everywhere.
            #expect(try JSONObject(members).decode(Account.self) == Account(id: 2, note: nil))
        }
    }

    @Test("Integers beyond 2^53 keep all their digits", arguments: [Int64.max, .min, 9_007_199_254_740_993])
    func integers(value: Int64) throws {
        #expect(try JSONValue.integer(value).decode(Int64.self) == value)
        #expect(try parse("[\(value)]").decode([Int64].self) == [value])
    }

    @Test("A whole number may be written with a fraction or an exponent, while that is exact")
    func wholeNumbers() throws {
        #expect(try parse("[1.0,2e3,-0]").decode([Int].self) == [1, 2000, 0])
        for text in ["1.5", "1e400", "9007199254740993.0", "1e17"] {
            #expect(try failure(text) { try $0.decode(Int.self) }?.code == .outOfRange)
        }
    }

    @Test("A number that does not fit is an error, never another number")
    func ranges() throws {
        #expect(try failure("256") { try $0.decode(UInt8.self) }?.code == .outOfRange)
        #expect(try failure("-1") { try $0.decode(UInt.self) }?.code == .outOfRange)
        #expect(try failure("9223372036854775808") { try $0.decode(Int64.self) }?.code == .outOfRange)
        #expect(try failure("1e999") { try $0.decode(Double.self) }?.code == .outOfRange)
        let digits = String(repeating: "1", count: 39)
        #expect(try failure(digits) { try $0.decode(Decimal.self) }?.code == .outOfRange)
        #expect(try failure("1e30") { try $0.decode(Date.self) }?.code == .outOfRange)
    }

    @Test("A missing member and a wrong type are told apart, with the place and without the value")
    func errors() throws {
        struct Outer: Decodable { let inner: [Claims.Address] }
        let missing = try failure(#"{"inner":[{"city":"x"},{}]}"#) { try $0.decode(Outer.self) }
        #expect(missing?.code == .missing && missing?.path == ["inner", "1", "city"])
        let wrong = try failure(#"{"inner":[{"city":4711}]}"#) { try $0.decode(Outer.self) }
        #expect(wrong?.code == .wrongType && wrong?.path == ["inner", "0", "city"])
        #expect(wrong.map { "\($0)" }?.contains("4711") == false)
        #expect(try failure(#"{"inner":null}"#) { try $0.decode(Outer.self) }?.code == .missing)
        #expect(try failure("[]") { try $0.decode(Outer.self) }?.code == .wrongType)
    }

    @Test("What the type itself refuses is an error that does not quote the value")
    func refused() throws {
        let error = try failure(#"["hunter2"]"#) { try $0.decode([Claims.Level].self) }
        #expect(error?.code == .invalidValue && error.map { "\($0)" }?.contains("hunter2") == false)
    }

    @Test("A type that contains itself does not use up the stack")
    func depth() throws {
        let deep = (0..<200).reduce(JSONValue.array([])) { value, _ in .array([value]) }
        #expect(throws: JSONDecodingError(deepCode)) { try deep.decode(Nested.self) }
    }

    private var deepCode: JSONDecodingError.Code { .tooDeep }

    @Test("Elements are read one after the other, null too, and the end is an error")
    func elements() throws {
        #expect(try parse("[1,null,3]").decode([Int?].self) == [1, nil, 3])
        struct Two: Decodable {
            init(from decoder: any Decoder) throws {
                var container = try decoder.unkeyedContainer()
                _ = try container.decode(Int.self)
                _ = try container.decode(Int.self)
            }
        }
        let error = try failure("[1]") { try $0.decode(Two.self) }
        #expect(error?.code == .missing && error?.path == ["1"])
    }

    @Test("A reply's content is read as a type, and what is no JSON is an error")
    func reply() async throws {
        let reply = HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(#"{"city":"Wien"}"#))
        #expect(try await reply.json(Claims.Address.self).city == "Wien")
        await #expect(throws: JSONError.self) {
            try await HTTPReply(HTTPResponse(status: .ok), body: HTTPBody("<html>")).json(Claims.Address.self)
        }
    }
}

extension JSONDecodingError {
    /// An error to compare with, which is by code.
    fileprivate init(_ code: Code) { self.init(code, at: [], "") }
}
