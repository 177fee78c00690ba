import AssentCore
import AssentSigning
import Testing

@testable import AssentCLI

@Suite("An answer to a transaction whose receipt was lost")
struct LostReceiptTests {
    /// Decides with `error`, and finds a receipt with the question of this number: that of an earlier answer where
    /// `isEarlier`.
    private func decide(
        _ error: SigningError?, isKept: [Bool] = [true], found: Int? = nil, refused: Int? = nil, isEarlier: Bool = false
    ) async -> (result: Result<String, any Error>, questions: Int) {
        var questions = 0
        var kept = isKept
        let lost = LostReceipt<String>(
            isKept: { kept.count > 1 ? kept.removeFirst() : kept[0] },
            ask: {
                questions += 1
                if questions == refused { throw SigningError(.transactionFailed) }
                return questions == found ? "receipt" : nil
            }, check: { _ in if isEarlier { throw CommandFailure.answered("txn") } }, pause: {})
        do {
            let receipt = try await lost.receipt(of: "txn") {
                if let error { throw error }
                return "at once"
            }
            return (.success(receipt), questions)
        } catch {
            return (.failure(error), questions)
        }
    }

    @Test("The outcome is asked for and told, and nothing is asked where the answer came")
    func found() async throws {
        let (first, none) = await decide(nil)
        #expect(try first.get() == "at once" && none == 0)
        let (second, twice) = await decide(SigningError(.remote), found: 2)
        #expect(try second.get() == "receipt" && twice == 2)
    }

    @Test("While nobody knows, the command ends with status 3 and says how to find out")
    func unknown() async throws {
        let (result, questions) = await decide(SigningError(.unavailable))
        let failure = #expect(throws: CommandFailure.self) { try result.get() }
        #expect(
            failure?.status == .unknown && failure?.description.contains("transactions show --transaction txn") == true)
        #expect(questions == 3)
    }

    @Test("What was never signed, what the server refuses, and what it refuses in the end stays the error that it is")
    func errors() async throws {
        let (unsigned, none) = await decide(SigningError(.remote), isKept: [false])
        #expect(throws: SigningError(.remote)) { try unsigned.get() }
        let (over, once) = await decide(SigningError(.remote), isKept: [true, false])
        #expect(throws: SigningError(.remote)) { try over.get() }
        let (late, twice) = await decide(SigningError(.remote), refused: 2)
        let known = #expect(throws: SigningError(.transactionFailed)) { try late.get() }
        #expect(known.map { Outcome($0).status } == .refused)
        #expect(none == 0 && once == 1 && twice == 2)
    }

    @Test("What the server has refused for good is sent once more, so that no later command tells of it again")
    func refused() async throws {
        for late in [nil, 1] {
            let (refused, once) = await decide(SigningError(.matchWrong), refused: late)
            #expect(throws: SigningError(.matchWrong)) { try refused.get() }
            #expect(once == 1)
        }
        let (unsigned, none) = await decide(SigningError(.transactionExpired), isKept: [false])
        #expect(throws: SigningError(.transactionExpired)) { try unsigned.get() }
        #expect(none == 0)
        // The refusal was not the server's: nobody signs one.
        let (taken, again) = await decide(SigningError(.transactionFailed), found: 1)
        #expect(try taken.get() == "receipt" && again == 1)
    }

    @Test(
        "Of the receipts that came a command shows its own, and the others are left to be told",
        arguments: [
            (nil, "one", ["two", "three"]), ("two", "two", ["one", "three"]), ("four", nil, ["one", "two", "three"]),
        ] as [(String?, String?, [String])])
    func others(named: String?, own: String?, others: [String]) {
        let heard = LostReceipt<String>.chosen(from: ["one", "two", "three"], named: named, id: { $0 })
        #expect(heard.own == own && heard.others == others)
        let nothing = LostReceipt<String>.chosen(from: [], named: named, id: { $0 })
        #expect(nothing.own == nil && nothing.others.isEmpty)
    }

    @Test("The receipt of an earlier answer, another than this one, is not given out for that of this one")
    func earlier() async throws {
        for error in [SigningError(.remote), SigningError(.alreadyDecided)] {
            let (result, questions) = await decide(error, found: 1, isEarlier: true)
            let failure = #expect(throws: CommandFailure.self) { try result.get() }
            #expect(failure?.status == .refused && failure?.description.contains("that answer stands") == true)
            #expect(questions == 1)
        }
    }
}
