package import AssentCore

/// Where the demo speaks.
package protocol Narrator: Sendable {
    /// A line for a person.
    func say(_ line: String)

    /// A piece of a line in a style, where styles can be shown.
    func styled(_ text: String, as style: NarrationStyle) -> String
}

/// What a piece of a narration's line is.
package enum NarrationStyle: Sendable {
    /// The title of a step.
    case title
    /// Something beside the matter.
    case aside
    /// Something that was refused.
    case refused
    /// Why something came out so.
    case reason
    /// A check that came out as it must.
    case passed
    /// A check that did not.
    case failed
}

/// What the demo tells: the steps of the story, what went over the wire in each, and how each came out.
package final class Narration: Sendable {
    /// Who takes part, from left to right in the diagram.
    package enum Party: String, Sendable, CaseIterable {
        case user = "Ana"
        case phone = "Phone"
        case app = "App (SDK)"
        case server = "assent serve"
        case gateway = "Gateway"
        case bank = "Bank"
        case thief = "Thief"
    }

    /// One thing that happened.
    package enum Event: Sendable, Hashable {
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

    private let narrator: any Narrator
    private let log = Locked<[Event]>([])

    /// A narration to somebody.
    package init(to narrator: any Narrator) {
        self.narrator = narrator
    }

    /// Everything told so far, in order.
    package var events: [Event] { log.withLock { $0 } }

    /// The checks that failed.
    package var failures: [String] {
        events.compactMap { if case .check(let text, passed: false) = $0 { text } else { nil } }
    }

    /// How many checks there were.
    package var checkCount: Int {
        events.count { if case .check = $0 { true } else { false } }
    }

    /// Everything told, for a script.
    package var json: JSONValue {
        [
            "checks": .integer(checkCount), "failures": .array(failures.map { .string($0) }),
            "events": .array(events.map(\.json)),
        ]
    }

    /// Tells and remembers.
    package func tell(_ event: Event) {
        log.withLock { $0.append(event) }
        switch event {
        case .step(let number, let title):
            narrator.say("")
            narrator.say(narrator.styled("\(number). \(title)", as: .title))
        case .message(let from, let to, let text, let refused):
            let arrow = narrator.styled("\(from.rawValue) → \(to.rawValue)", as: .aside)
            narrator.say("   \(arrow)  \(refused ? narrator.styled(text, as: .refused) : text)")
        case .note(let party, let text):
            narrator.say("   " + narrator.styled("\(party.rawValue): \(text)", as: .reason))
        case .clock(let text):
            narrator.say("   " + narrator.styled("clock: \(text)", as: .aside))
        case .check(let text, let passed):
            let mark = passed ? narrator.styled("✓", as: .passed) : narrator.styled("✗ FAILED", as: .failed)
            narrator.say("   \(mark) \(text)")
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
    package var payment: [Event] {
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
