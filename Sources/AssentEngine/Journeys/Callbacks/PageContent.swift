import AssentCore

/// What a page asks and how it may look.
package struct PageContent: Sendable, Hashable {
    /// What a client may use to choose how it looks.
    package let presentation: PagePresentation

    /// What it asks and shows, in order.
    package let prompts: [CallbackPrompt]

    /// A page.
    package init(presentation: PagePresentation = .plain, prompts: [CallbackPrompt]) {
        self.presentation = presentation
        self.prompts = prompts
    }
}

/// What a client may use to choose how a page looks.
package struct PagePresentation: Sendable, Hashable {
    /// A name for the page, for example `UsernamePassword`.
    package let stage: String?

    /// The title.
    package let header: String?

    /// The text below the title.
    package let description: String?

    /// A presentation; a part that is `nil` is left to the client.
    package init(stage: String? = nil, header: String? = nil, description: String? = nil) {
        self.stage = stage
        self.header = header
        self.description = description
    }

    /// A page that leaves everything to the client.
    package static let plain = PagePresentation()
}

extension PagePresentation {
    /// Reads what ``json`` has written; what is missing is left to the client.
    init(_ json: JSONValue?) {
        self.init(
            stage: json?["stage"]?.string, header: json?["header"]?.string, description: json?["description"]?.string)
    }

    /// The presentation as it is stored.
    var json: JSONValue {
        var object = JSONObject()
        object["stage"] = stage.map(JSONValue.string)
        object["header"] = header.map(JSONValue.string)
        object["description"] = description.map(JSONValue.string)
        return .object(object)
    }
}
