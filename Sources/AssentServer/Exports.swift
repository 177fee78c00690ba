// Notifier and what it is told. Nothing else of the engine is public.
@_exported public import AssentEngine
@_exported public import AssentSigningProtocol
