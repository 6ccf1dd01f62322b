export function useCompileCache(root?: string): void
export function cacheFolder(root: string): string | null
