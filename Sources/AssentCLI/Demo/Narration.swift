import AssentCore

/// What the demo tells: the steps of the story, what went over the wire in each, and how each came out.
final class Narration: Sendable {
    /// Who takes part, from left to right in the diagram.
    enum Party: String, Sendable, CaseIterable {
        case user = "Ana"
        case phone = "Phone"
        case app = "App (SDK)"
        case server = "assent serve"
        case gateway = "Gateway"
        case bank = "Bank"
    }

    /// One thing that happened.
    enum Event: Sendable, Hashable {
        /// A step of the story begins.
        case step(number: Int, title: String)
        /// Something went from one party to another.
        case message(from: Party, to: Party, text: String, refused: Bool)
        /// Why it came out so, or what somebody did by themselves.
        case note(Party, String)
        /// The clock was moved.
        case clock(String)
        /// A check of the story came out as it must, or did not.
        case check(String, passed: Bool)
    }

    private let console: Console
    private let log = Locked<[Event]>([])

    init(console: Console) {
        self.console = console
    }

    /// Everything told so far, in order.
    var events: [Event] { log.withLock { $0 } }

    /// The checks that failed.
    var failures: [String] {
        events.compactMap { if case .check(let text, passed: false) = $0 { text } else { nil } }
    }

    /// How many checks there were.
    var checkCount: Int {
        events.count { if case .check = $0 { true } else { false } }
    }

    /// Everything told, for a script.
    var json: JSONValue {
        [
            "checks": .integer(checkCount), "failures": .array(failures.map { .string($0) }),
            "events": .array(events.map(\.json)),
        ]
    }

    /// Tells and remembers.
    func tell(_ event: Event) {
        log.withLock { $0.append(event) }
        switch event {
        case .step(let number, let title):
            console.say("")
            console.say(console.styled("\(number). \(title)", .bold))
        case .message(let from, let to, let text, let refused):
            let arrow = console.styled("\(from.rawValue) → \(to.rawValue)", .dim)
            console.say("   \(arrow)  \(refused ? console.styled(text, .yellow) : text)")
        case .note(let party, let text):
            console.say("   " + console.styled("\(party.rawValue): \(text)", .cyan))
        case .clock(let text):
            console.say("   " + console.styled("clock: \(text)", .dim))
        case .check(let text, let passed):
            let mark = passed ? console.styled("✓", .green) : console.styled("✗ FAILED", .red)
            console.say("   \(mark) \(text)")
        }
    }
}

extension Narration {
    /// Tells what passed between gateway and bank, by the first line of a request or a reply. A query is left out.
    func tellBank(_ line: String, isReply: Bool) {
        let words = line.split(separator: " ")
        guard words.count > 1 else { return }
        if isReply {
            let isRefused = Int(words[1]).map { $0 >= 300 } ?? true
            tell(.message(from: .bank, to: .gateway, text: String(words[1]), refused: isRefused))
        } else {
            let text = "\(words[0]) \(words[1].prefix { $0 != "?" })"
            tell(.message(from: .gateway, to: .bank, text: text, refused: false))
        }
    }

    /// What the run told of one payment, without what its checks and the clock said: from "she pays" to the refusal of
    /// the same request again.
    var payment: [Event] {
        let rest = events.drop { if case .step(number: 4, _) = $0 { false } else { true } }
        var isAgain = false
        var payment: [Event] = []
        for event in rest {
            switch event {
            case .step(number: 4, let title): payment.append(.step(number: 1, title: title))
            case .step(_, let title) where !isAgain:
                isAgain = true
                payment.append(.step(number: 2, title: title))
            case .check where isAgain: return payment + [event]
            case .clock: continue
            default: payment.append(event)
            }
        }
        return payment
    }
}

extension Narration.Event {
    /// Whom it is about.
    var parties: [Narration.Party] {
        switch self {
        case .message(let from, let to, _, _): [from, to]
        case .note(let party, _): [party]
        case .step, .clock, .check: []
        }
    }

    fileprivate var json: JSONValue {
        switch self {
        case .step(let number, let title): ["step": .integer(number), "title": .string(title)]
        case .message(let from, let to, let text, let refused):
            [
                "from": .string(from.rawValue), "to": .string(to.rawValue), "text": .string(text),
                "refused": .bool(refused),
            ]
        case .note(let party, let text): ["party": .string(party.rawValue), "note": .string(text)]
        case .clock(let text): ["clock": .string(text)]
        case .check(let text, let passed): ["check": .string(text), "passed": .bool(passed)]
        }
    }
}
