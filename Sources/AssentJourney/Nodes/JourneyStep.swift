package import AssentCore

/// A step of a journey: what the server asks, and what the user answers.
///
/// It is a value: answers live in the copy they were set on. Every callback goes back in its place, known or not, with
/// everything that the server sent, since AM refuses a reply whose callbacks differ in number, order or type.
public struct JourneyStep: Sendable {
    /// The page's name for apps that draw a screen of their own; `nil` when the server sent none.
    public let stage: String?

    /// The page's heading; `nil` when the server sent none.
    public let header: String?

    /// The page's text; `nil` when the server sent none.
    public let description: String?

    /// That the answers to the step before were not accepted: this one asks the same again. `nil` where it asks
    /// something else, and in the first step.
    public internal(set) var refusal: AnswerRefusal?

    private var items: [any JourneyCallback]
    private let json: JSONObject
    private let sources: [JSONObject]
    let flow: JourneyFlow

    init(_ json: JSONObject, callbacks: [JSONObject], types: CallbackTypes, flow: JourneyFlow) {
        self.json = json
        self.flow = flow
        sources = callbacks
        stage = json["stage"]?.string
        header = json["header"]?.string
        description = json["description"]?.string
        items = callbacks.enumerated().map { types.callback(CallbackFields($1, position: $0)) }
    }

    /// All callbacks in their order. Setting it changes answers only: what does not stand where it stood is ignored.
    public var callbacks: [any JourneyCallback] {
        get { items }
        set {
            for (index, callback) in newValue.enumerated() where items.indices.contains(index) {
                if callback.fields == items[index].fields { items[index] = callback }
            }
        }
    }

    /// The callback of a type, the `index`th when there are several; `nil` when there is none.
    ///
    /// Setting it sets its answers; setting `nil` takes them away.
    public subscript<Callback: JourneyCallback>(_ type: Callback.Type, at index: Int = 0) -> Callback? {
        get { position(of: type, at: index).flatMap { items[$0] as? Callback } }
        set {
            guard let position = position(of: type, at: index) else { return }
            let fields = items[position].fields
            if let newValue {
                if newValue.fields == fields { items[position] = newValue }
            } else {
                items[position] = Callback(fields)
            }
        }
    }

    /// The prompts of the callbacks that still need an answer.
    ///
    /// The buttons of a step that waits for something to happen elsewhere need none.
    public var unanswered: [String] {
        let waits = items.contains { $0 is PollingWaitCallback }
        return items.filter { $0.needsAnswer && !(waits && $0 is ConfirmationCallback) }
            .map { $0.prompt.isEmpty ? $0.fields.type : $0.prompt }
    }

    /// What goes back: the step as it came, with the answers in it.
    package var reply: JSONValue {
        var reply = json
        reply["callbacks"] = .array(filled)
        return .object(reply)
    }

    var filled: [JSONValue] {
        zip(sources, items).enumerated().map { index, pair in
            CallbackFields(pair.0, position: index).filled(with: pair.1.answers)
        }
    }

    private func position<Callback: JourneyCallback>(of type: Callback.Type, at index: Int) -> Int? {
        guard index >= 0 else { return nil }
        return items.indices.filter { items[$0] is Callback }.dropFirst(index).first
    }
}

extension JourneyStep: CustomDebugStringConvertible, CustomReflectable {
    /// The types of the callbacks, and never an answer.
    public var debugDescription: String {
        "JourneyStep(\(items.map(\.fields.type).joined(separator: ", ")))"
    }

    /// A mirror that shows the callbacks, which show no answers.
    public var customMirror: Mirror { Mirror(self, children: ["callbacks": items]) }
}

/// What belongs to one run of a journey and must reach the next request.
struct JourneyFlow: Sendable {
    let session: Session?
    let noSession: Bool
    private let inUse = Locked(false)

    init(session: Session?, noSession: Bool) {
        self.session = session
        self.noSession = noSession
    }

    /// The same run at its next step.
    var nextStep: JourneyFlow { JourneyFlow(session: session, noSession: noSession) }

    /// Whether nobody else is sending this step, or has had an answer to it.
    func claim() -> Bool {
        inUse.withLock { inUse in
            defer { inUse = true }
            return !inUse
        }
    }

    func giveBack() { inUse.withLock { $0 = false } }
}
